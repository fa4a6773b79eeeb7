// SPDX-License-Identifier: MIT
#pragma once
/// \file operations.h
/// gnnd/operations.h on the GPU that the parameters name. Graphs of at least one row, each array on the host or on that
/// device. Needs no CUDA headers.

#include "gnnd/operations.h"

namespace gnnd::cuda {

CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                         Resources& resources);
std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                       Resources& resources);
CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                         Resources& resources);
CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                      Resources& resources);
CsrGraph jaccard_graph(const KnnGraphView& graph, const JaccardParams& params, const Callbacks& callbacks,
                       Resources& resources);
CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params, const Callbacks& callbacks,
                              Resources& resources);
Array<float> core_distances(const KnnGraphView& graph, const ReachabilityParams& params, const Callbacks& callbacks,
                            Resources& resources);
CsrGraph mutual_reachability_graph(const KnnGraphView& graph, const ReachabilityParams& params,
                                   const Callbacks& callbacks, Resources& resources);
Components connected_components(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                                Resources& resources);
Duplicates duplicates(const KnnGraphView& graph, const DuplicateParams& params, const Callbacks& callbacks,
                      Resources& resources);

}  // namespace gnnd::cuda
