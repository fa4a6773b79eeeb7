// SPDX-License-Identifier: MIT
#include "faiss_ext/evaluate.h"

#include <string>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/timer.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/right_share.h"

namespace faiss_ext {

using detail::fail;
using gnnd::detail::share_of_right;

namespace {

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

/// Against what an exact search finds.
Recall recall_by_search(const VectorSource& source, const gnnd::KnnGraphView& graph, bool by_object,
                        const std::vector<std::int32_t>& objects, int k, const Gpu& gpu) {
    detail::Timer timer;
    ExactGraphBuilder exact(gpu);
    const gnnd::KnnGraph truth = exact.search(source, objects, k);
    const double seconds = timer.lap();
    return {share_of_right(source.on_host(), graph, by_object, objects, truth, k), k, std::int64_t(objects.size()),
            seconds, exact.on_gpu};
}

}  // namespace

std::vector<std::int32_t> sample_objects(std::int64_t n, std::int64_t count, std::uint64_t seed) {
    return detail::with_faiss_errors([&] {
        if (n < 0 || n > gnnd::kMaxObjects || count < 0)
            fail("sample_objects: " + std::to_string(count) + " of " + std::to_string(n) + " objects");
        return gnnd::detail::sample_objects(n, count == 0 ? n : count, seed, gnnd::detail::kEvalStream);
    });
}

double recall_against(const VectorSource& source, const gnnd::KnnGraphView& graph,
                      const std::vector<std::int32_t>& objects, const gnnd::KnnGraphView& truth, int k) {
    return detail::with_faiss_errors([&] {
        check_fit(source, graph, k);
        return share_of_right(source.on_host(), graph, true, objects, truth, k);
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
        return share_of_right(source.on_host(), rows, false, objects, truth, k);
    });
}

}  // namespace faiss_ext
