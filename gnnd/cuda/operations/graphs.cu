// SPDX-License-Identifier: MIT
// The graph's entries as a sparse matrix: one direction, either, both.
#include "gnnd/cuda/operations/join.cuh"
#include "gnnd/cuda/operations/operations.h"

namespace gnnd::cuda {
namespace {

template <bool kUnion>
CsrGraph join(const char* who, const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
              Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own(who, graph, params, work);
    return own.edges.larger_is_nearer ? join_directions(own.edges, detail::Nearer<kUnion, true>(), params.room, work)
                                      : join_directions(own.edges, detail::Nearer<kUnion, false>(), params.room, work);
}

}  // namespace

CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                         Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own("neighbors_graph", graph, params, work);
    const SortedRows sorted(own.edges, true, work);
    const DeviceArray<std::int64_t> counts(work, graph.n + 1);
    GNND_CUDA(cudaMemcpyAsync(counts, sorted.lengths, std::size_t(graph.n) * sizeof(std::int64_t),
                              cudaMemcpyDeviceToDevice, work.stream));
    return to_matrix({graph.n, own.edges.columns, sorted.lengths, nullptr}, sorted.keys, counts, params.room, work);
}

std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                       Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own("full_rows", graph, params, work);
    return count_full(own.edges, work);
}

CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                         Resources& resources) {
    return join<true>("symmetric_graph", graph, params, callbacks, resources);
}

CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                      Resources& resources) {
    return join<false>("mutual_graph", graph, params, callbacks, resources);
}

}  // namespace gnnd::cuda
