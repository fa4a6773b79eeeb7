// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file evaluate.h
/// Recall@k of a graph against the exact neighbours.

#include <cstdint>
#include <vector>

#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

/// A measured recall, and how it was measured.
struct Recall {
    double value = 0;          ///< Recall@k in [0, 1]
    int k = 0;                 ///< neighbours compared
    std::int64_t queries = 0;  ///< objects sampled
    double seconds = 0;        ///< for finding the exact neighbours
    bool on_gpu = false;       ///< whether they were searched there
};

/// `count` distinct objects out of n, ascending, reproducible from the seed; all of them when count is 0 or >= n.
std::vector<std::int32_t> sample_objects(std::int64_t n, std::int64_t count, std::uint64_t seed);

/// Recall@k over a sample of the objects: the share of the graph's first k entries that are no farther than the exact
/// k-th neighbour. Ties are counted by distance: any object at the k-th distance is as good as another.
/// \param source  n vectors, over which the graph was built
/// \param graph   n x at least k
/// \param k       1 to the graph's k
/// \param count   objects sampled, 0: all
/// \param seed    of the sample; the same one takes the same objects
/// \param gpu     where the exact neighbours are searched
/// \throws faiss::FaissException when k exceeds the graph's, or graph and source do not fit
Recall recall(const VectorSource& source, const gnnd::KnnGraphView& graph, int k, std::int64_t count = 10000,
              std::uint64_t seed = 1, const Gpu& gpu = {});

/// The same, in [0, 1], against exact rows found before (truth row i belongs to objects[i], at least k columns).
/// \throws faiss::FaissException as recall()
double recall_against(const VectorSource& source, const gnnd::KnnGraphView& graph,
                      const std::vector<std::int32_t>& objects, const gnnd::KnnGraphView& truth, int k);

/// Recall@k of rows of a graph that need not be in memory as a whole.
/// \param source   the vectors that ids are rows of
/// \param rows     objects.size() x at least k; row i belongs to objects[i]
/// \param objects  numbers in [0, n)
/// \param k        1 to the rows' k
/// \param gpu      where the exact neighbours are searched
/// \throws faiss::FaissException as recall()
Recall recall_of_rows(const VectorSource& source, const gnnd::KnnGraphView& rows,
                      const std::vector<std::int32_t>& objects, int k, const Gpu& gpu = {});

/// The same, in [0, 1], against exact rows found before, as recall_against().
double recall_of_rows_against(const VectorSource& source, const gnnd::KnnGraphView& rows,
                              const std::vector<std::int32_t>& objects, const gnnd::KnnGraphView& truth, int k);

}  // namespace faiss_ext
