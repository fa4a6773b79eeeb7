// SPDX-License-Identifier: MIT
#pragma once
/// \file operations.h
/// The CPU's side of gnnd/operations.h: graphs in host memory.

#include "gnnd/operations.h"

namespace gnnd::cpu {

CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks);
std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks);
CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks);
CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks);
CsrGraph jaccard_graph(const KnnGraphView& graph, const JaccardParams& params, const Callbacks& callbacks);
CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params, const Callbacks& callbacks);
Array<float> core_distances(const KnnGraphView& graph, const ReachabilityParams& params, const Callbacks& callbacks);
CsrGraph mutual_reachability_graph(const KnnGraphView& graph, const ReachabilityParams& params,
                                   const Callbacks& callbacks);
Components connected_components(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks);
Duplicates duplicates(const KnnGraphView& graph, const DuplicateParams& params, const Callbacks& callbacks);

}  // namespace gnnd::cpu
