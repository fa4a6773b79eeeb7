// SPDX-License-Identifier: MIT
// GGM, the merge of two graphs: their columns on the way into the lists, and those that are set aside until the end.
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/memory/transfer.h"

namespace gnnd::cuda {
namespace {

/// Columns [begin, end) of one of the graphs: where they lie, or copied to the part of the work memory.
Columns columns_of(const BuildState& state, int set, std::int64_t begin, std::int64_t end, const Part& part) {
    const KnnGraphView& graph = state.input.graphs[set];
    const u32 first = set == 0 ? 0 : u32(state.input.graphs[0].n);
    if (on_device(graph.ids)) return {graph.ids, graph.distances, graph.n, graph.k, begin, end, first};
    auto* ids = reinterpret_cast<std::int32_t*>(state.memory + part.offset);
    auto* distances = reinterpret_cast<float*>(ids + graph.n * (end - begin));
    const std::size_t row = std::size_t(end - begin) * 4, stride = std::size_t(graph.k) * 4;
    if (row != 0) {
        copy_in(ids, graph.ids + begin, graph.n, row, stride, state.resources, state.stream);
        copy_in(distances, graph.distances + begin, graph.n, row, stride, state.resources, state.stream);
    }
    return {ids, distances, graph.n, end - begin, 0, end - begin, first};
}

std::int64_t kept_of(const BuildState& state, int set) {
    return detail::kept_columns(state.input.graphs[set], state.params);
}

}  // namespace

void load_kept_columns(const BuildState& state) {
    for (int set = 0; set < 2; ++set)
        load_graph(columns_of(state, set, 0, kept_of(state, set), state.plan.given[set]), state.lists, state.info,
                   state.stream);
}

Columns set_aside_columns(const BuildState& state, int set) {
    return columns_of(state, set, kept_of(state, set), state.input.graphs[set].k, state.plan.set_aside[set]);
}

}  // namespace gnnd::cuda
