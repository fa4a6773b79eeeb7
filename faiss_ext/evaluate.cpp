// SPDX-License-Identifier: MIT
#include "faiss_ext/evaluate.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/timer.h"
#include "gnnd/random.h"

namespace faiss_ext {

using detail::fail;

namespace {

/// The metric's values of each object with the first k entries of its row, objects x k; rows[i] is whose row it is.
std::vector<float> values_of(const VectorSource& source, const gnnd::KnnGraphView& rows,
                             const std::vector<std::int32_t>& objects, int k, bool by_object) {
    std::vector<std::int32_t> owners(objects.size() * k), others(objects.size() * k);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        std::fill_n(owners.begin() + i * k, k, objects[i]);
        std::copy_n(rows.ids_of(by_object ? objects[i] : std::int64_t(i)), k, others.begin() + i * k);
    }
    std::vector<float> values(owners.size());
    gnnd::pair_distances(source.on_host(), source.metric(), owners.data(), others.data(), std::int64_t(owners.size()),
                         values.data());
    return values;
}

void check_k(const gnnd::KnnGraphView& graph, int k) {
    if (k < 1 || k > graph.k)
        fail("recall: k is " + std::to_string(k) + ", the graph allows 1 to " + std::to_string(graph.k));
}

void check_fit(const VectorSource& source, const gnnd::KnnGraphView& graph, int k) {
    detail::check_fit("recall", source, graph);
    check_k(graph, k);
}

void check_rows(const VectorSource& source, const gnnd::KnnGraphView& rows, const std::vector<std::int32_t>& objects,
                int k) {
    check_k(rows, k);
    if (rows.n != std::int64_t(objects.size()) || rows.metric != source.metric())
        fail("recall: " + std::to_string(rows.n) + " rows under " + std::string(gnnd::name_of(rows.metric)) + " for " +
             std::to_string(objects.size()) + " objects under " + std::string(gnnd::name_of(source.metric())));
}

/// The share of right entries. by_object: graph has a row for every object, not only for these.
double share_of_right(const VectorSource& source, const gnnd::KnnGraphView& graph, bool by_object,
                      const std::vector<std::int32_t>& objects, const gnnd::KnnGraphView& truth, int k) {
    const std::int64_t n = source.vectors().n;
    if (truth.n != std::int64_t(objects.size()) || truth.k < k || truth.metric != graph.metric)
        fail("recall: the truth is " + std::to_string(truth.n) + " x " + std::to_string(truth.k) + " under " +
             std::string(gnnd::name_of(truth.metric)) + ", needed are " + std::to_string(objects.size()) +
             " rows of at least " + std::to_string(k) + " under " + std::string(gnnd::name_of(graph.metric)));
    for (const std::int32_t object : objects)
        if (object < 0 || object >= n) fail("recall: there is no object " + std::to_string(object));
    const int compared = int(std::min<std::int64_t>(k, n - 1));
    if (objects.empty() || compared == 0) fail("recall: there is nothing to compare");

    const std::vector<float> exact = values_of(source, truth, objects, compared, false);
    const std::vector<float> found = values_of(source, graph, objects, compared, by_object);
    const bool similarity = gnnd::is_similarity(graph.metric);
    std::int64_t hits = 0;
    std::vector<std::int32_t> counted;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const auto begin = exact.begin() + std::int64_t(i) * compared;
        const float threshold =
            similarity ? *std::min_element(begin, begin + compared) : *std::max_element(begin, begin + compared);
        counted.clear();
        for (int j = 0; j < compared; ++j) {
            const std::int32_t id = graph.ids_of(by_object ? objects[i] : std::int64_t(i))[j];
            const float value = found[i * compared + j];
            const bool near = similarity ? value >= threshold : value <= threshold;
            if (id >= 0 && id != objects[i] && near) counted.push_back(id);
        }
        std::sort(counted.begin(), counted.end());
        hits += std::unique(counted.begin(), counted.end()) - counted.begin();
    }
    return double(hits) / (double(objects.size()) * compared);
}

/// Against what an exact search finds.
Recall recall_by_search(const VectorSource& source, const gnnd::KnnGraphView& graph, bool by_object,
                        const std::vector<std::int32_t>& objects, int k, const Gpu& gpu) {
    detail::Timer timer;
    ExactGraphBuilder exact(gpu);
    const gnnd::KnnGraph truth = exact.search(source, objects, k);
    const double seconds = timer.lap();
    return {share_of_right(source, graph, by_object, objects, truth, k), k, std::int64_t(objects.size()), seconds,
            exact.on_gpu};
}

}  // namespace

std::vector<std::int32_t> sample_objects(std::int64_t n, std::int64_t count, std::uint64_t seed) {
    return detail::with_faiss_errors([&] {
        if (n < 0 || n > gnnd::kMaxObjects || count < 0)
            fail("sample_objects: " + std::to_string(count) + " of " + std::to_string(n) + " objects");
        std::vector<std::int32_t> sample;
        if (count == 0 || count >= n) {
            sample.resize(n);
            std::iota(sample.begin(), sample.end(), 0);
            return sample;
        }
        // Floyd's algorithm: no array of n.
        gnnd::Random random(seed);
        std::unordered_set<std::int32_t> chosen;
        for (std::int64_t last = n - count; last < n; ++last) {
            const auto pick = std::int32_t(random.below(std::uint32_t(last + 1)));
            if (!chosen.insert(pick).second) chosen.insert(std::int32_t(last));
        }
        sample.assign(chosen.begin(), chosen.end());
        std::sort(sample.begin(), sample.end());
        return sample;
    });
}

double recall_against(const VectorSource& source, const gnnd::KnnGraphView& graph,
                      const std::vector<std::int32_t>& objects, const gnnd::KnnGraphView& truth, int k) {
    return detail::with_faiss_errors([&] {
        check_fit(source, graph, k);
        return share_of_right(source, graph, true, objects, truth, k);
    });
}

Recall recall(const VectorSource& source, const gnnd::KnnGraphView& graph, int k, std::int64_t count,
              std::uint64_t seed, const Gpu& gpu) {
    return detail::with_faiss_errors([&] {
        check_fit(source, graph, k);
        return recall_by_search(source, graph, true, sample_objects(graph.n, count, seed), k, gpu);
    });
}

Recall recall_of_rows(const VectorSource& source, const gnnd::KnnGraphView& rows,
                      const std::vector<std::int32_t>& objects, int k, const Gpu& gpu) {
    return detail::with_faiss_errors([&] {
        check_rows(source, rows, objects, k);
        return recall_by_search(source, rows, false, objects, k, gpu);
    });
}

double recall_of_rows_against(const VectorSource& source, const gnnd::KnnGraphView& rows,
                              const std::vector<std::int32_t>& objects, const gnnd::KnnGraphView& truth, int k) {
    return detail::with_faiss_errors([&] {
        check_rows(source, rows, objects, k);
        return share_of_right(source, rows, false, objects, truth, k);
    });
}

}  // namespace faiss_ext
