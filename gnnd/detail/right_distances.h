// SPDX-License-Identifier: MIT
#pragma once
/// \file right_distances.h
/// Whether a graph is one of the vectors that come with it.

#include <string>

#include "gnnd/graph.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

/// Compares the nearest entries of up to 1,000 rows, computed anew, with what the graph says. A merge takes its
/// distances as they are: where they are another metric's, or of other vectors, its result is neither right nor
/// measured right.
/// \param graph, vectors  in host memory, of n rows each
/// \param of, in          what messages call them
/// \throws InvalidArgument where less than half agree within a hundredth: sums that cancel out differ by more, but few
///         do
void check_distances(const KnnGraphView& graph, const std::string& of, const VectorView& vectors,
                     const std::string& in);

}  // namespace gnnd::detail
