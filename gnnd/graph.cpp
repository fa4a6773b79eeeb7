#include "gnnd/graph.h"

#include <algorithm>
#include <string>

#include "gnnd/error.h"
#include "gnnd/vectors.h"

namespace gnnd {

KnnGraph::KnnGraph(std::int64_t n, std::int64_t k, Metric metric) : n_(n), k_(k), metric_(metric) {
    if (n < 0 || n > kMaxObjects || k < 1 || k > 65535)
        throw InvalidArgument("KnnGraph of " + std::to_string(n) + " x " + std::to_string(k) +
                              ", allowed are n up to " + std::to_string(kMaxObjects) + " and k from 1 to 65535");
    ids_.assign(n * k, -1);
    distances_.assign(n * k, worst_value(metric));
}

void check_structure(const KnnGraphView& graph) {
    const auto refuse = [](std::int64_t row, const std::string& what) {
        throw InvalidArgument("graph row " + std::to_string(row) + ": " + what);
    };
    const bool similarity = is_similarity(graph.metric);
    const std::int64_t full = std::min(graph.k, std::max<std::int64_t>(graph.n - 1, 0));
    std::vector<std::int32_t> sorted(full);
    for (std::int64_t i = 0; i < graph.n; ++i) {
        const std::int32_t* ids = graph.ids_of(i);
        const float* distances = graph.distances_of(i);
        for (std::int64_t j = 0; j < full; ++j) {
            if (ids[j] < 0 || ids[j] >= graph.n)
                refuse(i, "id " + std::to_string(ids[j]) + " is outside of [0, " + std::to_string(graph.n) + ")");
            if (ids[j] == i) refuse(i, "holds itself");
            if (j == 0) continue;
            const float before = similarity ? -distances[j - 1] : distances[j - 1];
            const float here = similarity ? -distances[j] : distances[j];
            if (!(before < here || (before == here && ids[j - 1] < ids[j])))
                refuse(i, "entry " + std::to_string(j) + " is out of order");
        }
        std::copy_n(ids, full, sorted.begin());
        std::sort(sorted.begin(), sorted.end());
        const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
        if (twice != sorted.end()) refuse(i, "holds id " + std::to_string(*twice) + " twice");
        for (std::int64_t j = full; j < graph.k; ++j)
            if (ids[j] != -1 || distances[j] != worst_value(graph.metric))
                refuse(i, "entry " + std::to_string(j) + " should be padding");
    }
}

}  // namespace gnnd
