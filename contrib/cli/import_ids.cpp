// SPDX-License-Identifier: MIT
#include "import_ids.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "files.h"
#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "interrupt.h"

namespace cli {

gnnd::KnnGraph import_ids(const gnnd::io::VectorFile& ids, const gnnd::io::VectorFile& base, gnnd::Metric metric) {
    const std::int64_t n = base.n(), width = ids.d();
    const auto refuse = [&](const std::string& what) { throw gnnd::InvalidArgument(ids.path() + ": " + what); };
    if (ids.dtype() != gnnd::DType::i32) refuse("holds " + std::string(name_of(ids.dtype())) + ", not ids");
    if (ids.n() != n)
        refuse("has " + std::to_string(ids.n()) + " rows, " + base.path() + " has " + std::to_string(n) + " vectors");
    const bool similarity = is_similarity(metric);
    const auto better = [similarity](const auto& a, const auto& b) {
        if (a.first != b.first) return similarity ? a.first > b.first : a.first < b.first;
        return a.second < b.second;
    };
    gnnd::KnnGraph wide(n, width, metric);
    std::int64_t k = width;
    std::vector<std::int32_t> row(static_cast<std::size_t>(width)), self(row.size());
    std::vector<float> distances(row.size());
    std::vector<std::pair<float, std::int32_t>> found;
    for (std::int64_t i = 0; i < n; ++i) {
        if (i % 4096 == 0) stop_if_interrupted();
        ids.read(i, 1, row.data());
        for (const std::int32_t id : row)
            if (id < -1 || id >= n)
                refuse("row " + std::to_string(i) + " holds id " + std::to_string(id) + ", expected -1 to " +
                       std::to_string(n - 1));
        std::sort(row.begin(), row.end());
        const auto last = std::remove_if(row.begin(), std::unique(row.begin(), row.end()),
                                         [i](std::int32_t id) { return id < 0 || id == i; });
        const std::int64_t count = last - row.begin();
        if (count == 0) refuse("row " + std::to_string(i) + " holds no neighbour");
        k = std::min(k, count);
        std::fill_n(self.begin(), count, std::int32_t(i));
        with_row_names({&base},
                       [&] { pair_distances(base.view(), metric, self.data(), row.data(), count, distances.data()); });
        found.clear();
        for (std::int64_t j = 0; j < count; ++j) found.emplace_back(distances[j], row[j]);
        std::sort(found.begin(), found.end(), better);
        for (std::int64_t j = 0; j < count; ++j) {
            wide.ids()[i * width + j] = found[j].second;
            wide.distances()[i * width + j] = found[j].first;
        }
        row.resize(static_cast<std::size_t>(width));
    }
    if (k == width) return wide;
    gnnd::KnnGraph graph(n, k, metric);
    for (std::int64_t i = 0; i < n; ++i) {
        std::copy_n(wide.ids_of(i), k, graph.ids() + i * k);
        std::copy_n(wide.distances_of(i), k, graph.distances() + i * k);
    }
    return graph;
}

}  // namespace cli
