// SPDX-License-Identifier: MIT
#pragma once
/// \file right_share.h
/// Recall@k against neighbours that are known to be exact.

#include <cstdint>
#include <vector>

#include "gnnd/graph.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

/// The share of right entries among the first k of the objects' rows: those no farther than the object's exact k-th
/// neighbour, so that ties count whichever of them was taken. All distances are computed anew.
/// \param vectors    n x d in host memory
/// \param graph      a row for each of the n objects, or with `by_object` false row i for objects[i]; at least k
/// columns \param objects    whose rows are judged, ids in [0, n) \param truth      row i for objects[i], at least k
/// columns, of the graph's metric \return of objects.size() * min(k, n - 1) entries, in [0, 1] \throws InvalidArgument
/// where these do not fit, and where there is nothing to compare
double share_of_right(const VectorView& vectors, const KnnGraphView& graph, bool by_object,
                      const std::vector<std::int32_t>& objects, const KnnGraphView& truth, int k);

}  // namespace gnnd::detail
