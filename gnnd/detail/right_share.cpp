// SPDX-License-Identifier: MIT
#include "gnnd/detail/right_share.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/recall.h"
#include "gnnd/error.h"

namespace gnnd::detail {

namespace {

/// The metric's values of each object with the first k entries of its row, objects x k; rows[i] is whose row it is.
std::vector<float> values_of(const VectorView& vectors, const KnnGraphView& rows,
                             const std::vector<std::int32_t>& objects, int k, bool by_object) {
    std::vector<std::int32_t> owners(objects.size() * k), others(objects.size() * k);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const std::int32_t* ids = rows.ids_of(by_object ? objects[i] : std::int64_t(i));
        for (int j = 0; j < k; ++j)
            if (ids[j] < -1 || ids[j] >= vectors.n)
                throw InvalidArgument("recall: the row of object " + std::to_string(objects[i]) + " holds id " +
                                      std::to_string(ids[j]) + " of " + std::to_string(vectors.n) + " objects");
        std::fill_n(owners.begin() + i * k, k, objects[i]);
        std::copy_n(ids, k, others.begin() + i * k);
    }
    std::vector<float> values(owners.size());
    pair_distances(vectors, rows.metric, owners.data(), others.data(), std::int64_t(owners.size()), values.data());
    return values;
}

}  // namespace

std::vector<int> count_right(const VectorView& vectors, const KnnGraphView& graph, bool by_object,
                             const std::vector<std::int32_t>& objects, const KnnGraphView& truth, int k) {
    const std::int64_t n = vectors.n;
    if (truth.n != std::int64_t(objects.size()) || truth.k < k || truth.metric != graph.metric)
        throw InvalidArgument("recall: the truth is " + std::to_string(truth.n) + " x " + std::to_string(truth.k) +
                              " under " + std::string(name_of(truth.metric)) + ", needed are " +
                              std::to_string(objects.size()) + " rows of at least " + std::to_string(k) + " under " +
                              std::string(name_of(graph.metric)));
    for (const std::int32_t object : objects)
        if (object < 0 || object >= n) throw InvalidArgument("recall: there is no object " + std::to_string(object));
    const int compared = int(std::min<std::int64_t>(k, n - 1));
    if (objects.empty() || compared == 0) throw InvalidArgument("recall: there is nothing to compare");

    const std::vector<float> exact = values_of(vectors, truth, objects, compared, false);
    const std::vector<float> found = values_of(vectors, graph, objects, compared, by_object);
    const bool similarity = is_similarity(graph.metric);
    const double equal = rounding_factor(graph.metric, vectors.d);
    std::vector<int> right;
    right.reserve(objects.size());
    std::vector<std::int32_t> counted;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const auto begin = exact.begin() + std::int64_t(i) * compared;
        const double threshold = equal * double(similarity ? *std::min_element(begin, begin + compared)
                                                           : *std::max_element(begin, begin + compared));
        counted.clear();
        for (int j = 0; j < compared; ++j) {
            const std::int32_t id = graph.ids_of(by_object ? objects[i] : std::int64_t(i))[j];
            const float value = found[i * compared + j];
            const bool near = similarity ? value >= threshold : value <= threshold;
            if (id >= 0 && id != objects[i] && near) counted.push_back(id);
        }
        std::sort(counted.begin(), counted.end());
        right.push_back(int(std::unique(counted.begin(), counted.end()) - counted.begin()));
    }
    return right;
}

double share_of_right(const VectorView& vectors, const KnnGraphView& graph, bool by_object,
                      const std::vector<std::int32_t>& objects, const KnnGraphView& truth, int k) {
    const std::vector<int> right = count_right(vectors, graph, by_object, objects, truth, k);
    const auto compared = double(std::min<std::int64_t>(k, vectors.n - 1));
    return double(std::accumulate(right.begin(), right.end(), std::int64_t(0))) / (double(objects.size()) * compared);
}

RecallEstimate measure_rows(const VectorView& vectors, const VectorView& on_host, const KnnGraphView& rows,
                            const std::vector<std::int32_t>& objects, const BuildParams& given,
                            const Callbacks& callbacks) {
    BuildParams params = given;
    params.recall_at = 0;  // it says nothing here
    params.device = choose(given.device);
    check_reach(params.device, {vectors.data});
    const auto count = std::int64_t(objects.size());
    const KnnGraph truth = count == vectors.n ? build_exact(vectors, params, callbacks).graph
                                              : exact_neighbors(vectors, objects.data(), count, params, callbacks);
    RecallCount counted{vectors.n, count, int(std::min<std::int64_t>(params.k, vectors.n - 1))};
    for (const int found : count_right(on_host, rows, false, objects, truth, params.k)) counted.add(found);
    return estimate_recall(counted);
}

}  // namespace gnnd::detail
