// SPDX-License-Identifier: MIT
#pragma once
/// \file right_share.h
/// Recall@k against neighbours that are known to be exact.

#include <cstdint>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/graph.h"
#include "gnnd/params.h"
#include "gnnd/stats.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

/// Counts those of the first k entries of each object's row that are right: no farther than its exact k-th neighbour,
/// so that ties count whichever of them was taken, neither the object itself nor an id for the second time. All
/// distances are computed anew, of the graph only ids count.
/// \param vectors    n x d in host memory
/// \param graph      a row for each of the n objects, or with `by_object` false row i for objects[i]; k columns or more
/// \param objects    whose rows are judged, ids in [0, n)
/// \param truth      row i for objects[i], at least k columns, of the graph's metric
/// \return           of each object, of min(k, n - 1)
/// \throws InvalidArgument where these do not fit, where there is nothing to compare, and for a row with an id that
///         is no object's
std::vector<int> count_right(const VectorView& vectors, const KnnGraphView& graph, bool by_object,
                             const std::vector<std::int32_t>& objects, const KnnGraphView& truth, int k);

/// The share of them, of objects.size() * min(k, n - 1) entries, in [0, 1].
double share_of_right(const VectorView& vectors, const KnnGraphView& graph, bool by_object,
                      const std::vector<std::int32_t>& objects, const KnnGraphView& truth, int k);

/// The recall of a graph on some of its objects, each of which is compared with all others on the parameters' device;
/// of all objects every pair is compared once.
/// \param vectors    n x d, where the device reaches them
/// \param on_host    the same in host memory
/// \param rows       row i for objects[i], at least params.k columns
/// \param objects    ids in [0, n)
/// \param params     k: how many neighbours count; metric, device and threads
/// \throws as count_right() and exact_neighbors()
RecallEstimate measure_rows(const VectorView& vectors, const VectorView& on_host, const KnnGraphView& rows,
                            const std::vector<std::int32_t>& objects, const BuildParams& params,
                            const Callbacks& callbacks);

}  // namespace gnnd::detail
