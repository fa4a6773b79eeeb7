// SPDX-License-Identifier: MIT
#pragma once
/// \file merge_by_search.h
/// Merging the graphs of two sets as GGNN does it, to compare GGM with: a graph index of either set is searched with
/// the vectors of the other, and what is found goes into the lists.

#include <faiss/Index.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "faiss_ext/vector_source.h"
#include "gnnd/detail/fold.h"
#include "gnnd/graph.h"

namespace gnnd::benchs {

/// The result of merge_by_search(), and the wall time of its steps.
struct SearchedMerge {
    KnnGraph graph;             ///< (n1 + n2) x k, object j of the second set is n1 + j
    double index_seconds = 0;   ///< until both indexes were made
    double search_seconds = 0;  ///< of the searches
    double fold_seconds = 0;    ///< until all lists had what was found
};

/// Makes an index of a set from its graph, ready to be searched, its beam set.
using MakeIndex = std::function<std::unique_ptr<faiss::Index>(const faiss_ext::VectorSource&, const KnnGraph&)>;

/// \param views   two sets of float32 vectors of one d, rows behind each other in memory
/// \param graphs  of these, each with k columns
/// \param metric  of the graphs, one whose values FAISS's search gives: l2 or ip
inline SearchedMerge merge_by_search(const VectorView (&views)[2], const KnnGraph (&graphs)[2], Metric metric,
                                     const MakeIndex& make) {
    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    const std::int64_t k = graphs[0].k(), begins[2] = {0, views[0].n};
    SearchedMerge merged;
    merged.graph = KnnGraph(views[0].n + views[1].n, int(k), metric);
    for (int half = 0; half < 2; ++half) {
        const int other = 1 - half;
        const std::int64_t n = views[half].n;
        auto start = Clock::now();
        const std::unique_ptr<faiss::Index> index = make(faiss_ext::VectorSource(views[other], metric), graphs[other]);
        merged.index_seconds += since(start);
        start = Clock::now();
        KnnGraph found(n, int(k), metric);
        std::vector<faiss_ext::idx_t> labels(std::size_t(n * k));
        index->search(n, static_cast<const float*>(views[half].data), k, found.distances(), labels.data());
        merged.search_seconds += since(start);
        start = Clock::now();
        std::copy(labels.begin(), labels.end(), found.ids());
        std::int32_t* ids = merged.graph.ids() + begins[half] * k;
        float* distances = merged.graph.distances() + begins[half] * k;
        detail::put_rows(graphs[half], begins[half], ids, distances, 0);
        detail::fold(found, {0, std::int32_t(views[other].n), begins[other]}, k, ids, distances, 0);
        merged.fold_seconds += since(start);
    }
    return merged;
}

}  // namespace gnnd::benchs
