// SPDX-License-Identifier: MIT
#pragma once
/// \file append_rows.h
/// append() of a few vectors to a graph that its owner changes in place, at a cost that their number decides.

#include <cstdint>
#include <vector>

#include "gnnd/builder.h"

namespace gnnd::detail {

/// The rows that an append changes in a graph.
struct AppendedRows {
    std::vector<std::int32_t> objects;  ///< old ones whose rows change, ascending
    KnnGraph rows;                      ///< of these, then of the added ones: (objects + added) x k
    BuildStats stats;                   ///< without a recall
};

inline constexpr std::int64_t kMostAppended = 1024;  ///< vectors at once

/// append() by searching, on the CPU. Nothing is measured, and the graph is not checked.
/// \param vectors  n x d in host memory: those of the graph, then 1 to kMostAppended added ones
/// \param graph    of the first of them, params.k columns and more objects than that
/// \param params   validated; `recall` is not looked at
/// \throws InvalidArgument that names an added vector which no metric can work with, Interrupted, std::bad_alloc
AppendedRows append_rows(const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params,
                         const Callbacks& callbacks);

}  // namespace gnnd::detail
