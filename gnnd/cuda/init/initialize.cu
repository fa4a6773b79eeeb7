// SPDX-License-Identifier: MIT
// Step 1 of GNND as the host sees it: trees, or random or given neighbours.
#include <algorithm>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/codes.h"

namespace gnnd::cuda {
namespace {

/// Neighbours that an object takes from each of its windows.
constexpr int kPerWindow = 8;

// Chosen by measurement (benchs/NOTEBOOK.md).
/// Codes are used where fewer than one in so many objects has neighbours too near for them (codes.h).
constexpr int kFewCoarse = 16;

int bits_for(std::uint64_t values) {
    int bits = 1;
    while (values > std::uint64_t(1) << bits) ++bits;
    return bits;
}

/// Orders all objects so that those of a leaf, a window, stand together: a random-projection tree, level by level.
void grow_tree(BuildState& state, u32 seed) {
    const std::int64_t window = state.engine->window_size(state.points);
    number(state.order[0], state.n, state.stream);
    for (std::int64_t node = state.n, level = 0; node > window; ++level) {
        const int pivots = int(std::min<std::int64_t>(kMaxPivots, (node + kBlockRows - 1) / kBlockRows));
        assigning_engine_for(state.form.packed)
            .assign_to_pivots(state.assigning,
                              {.order = state.order[0],
                               .node_size = node,
                               .pivots = pivots,
                               .seed = mix(seed + u32(level)),
                               .keys = state.keys[0]},
                              state.stream);
        if (can_sort_nodes(node, pivots)) {
            sort_nodes(state.keys[0], state.order[0], state.n, node, pivots, state.stream);
        } else {
            const std::int64_t nodes = (state.n + node - 1) / node;
            sort(state.keys, state.order, state.n, bits_for(std::uint64_t(nodes) * pivots), state.sort_work,
                 state.plan.sort.bytes, state.stream);
        }
        const std::int64_t smaller = node / pivots;
        node = std::max(window, (smaller + window - 1) / window * window);
    }
}

/// True where codes tell neighbours from others badly, by what the first tree has found. Waits for the stream.
bool too_coarse(const BuildState& state, const Candidates& candidates, int take) {
    count_coarse(candidates, take, state.n, state.info, state.stream);
    return read_info(state).coarse > state.n / kFewCoarse;
}

/// In a merge lists hold columns already, else nothing, and all their places are written.
void start_from_trees(BuildState& state) {
    Candidates candidates = state.variant.candidates;
    candidates.capacity = state.plan.tree_capacity;
    const int trees = state.choices.trees, take = std::min(kPerWindow, candidates.capacity);
    int at = 0;
    bool empty = !state.input.merges();
    for (int tree = 0; tree < trees; ++tree) {
        grow_tree(state, state.seed_of(0x10000u + u32(tree)));
        state.engine->join_window(
            state.points, {.order = state.order[0], .candidates = candidates, .at = at, .take = take}, state.stream);
        if (tree == 0 && state.form.codes) {
            state.coarse = too_coarse(state, candidates, take);
            if (state.coarse && state.choices.codes == Codes::automatic) {
                use_float16(state);
                --tree;
                continue;
            }
        }
        at += take;
        if (at + take > candidates.capacity || tree + 1 == trees) {
            if (empty)
                fill_lists(state.lists, candidates, state.n, state.counters, state.stream);
            else
                apply_candidates(state.lists, candidates, state.n, state.stop, state.counters, state.stream);
            empty = false;
            at = 0;
        }
    }
    auto* visit = reinterpret_cast<u32*>(state.memory + state.plan.visit.offset);
    GNND_CUDA(cudaMemcpyAsync(visit, state.order[0], std::size_t(state.n) * sizeof(u32), cudaMemcpyDeviceToDevice,
                              state.stream));
    state.visit = visit;
}

/// \param graph  n x width ids on the device; null: neighbours that params.init picks
void start_from_neighbors(const BuildState& state, const std::int32_t* graph, int width) {
    const int room = state.plan.capacity;
    for (int first = 0; first < width; first += room) {
        state.engine->init_neighbors(state.points,
                                     {.candidates = state.variant.candidates,
                                      .graph = graph,
                                      .width = width,
                                      .first = first,
                                      .count = std::min(room, width - first),
                                      .init = state.params.init,
                                      .seed = state.seed_of(0x20000u + u32(first)),
                                      .ordered = state.params.deterministic},
                                     state.stream);
        state.take_candidates();
    }
}

void start_from_graph(const BuildState& state) {
    const KnnGraphView& graph = state.input.graphs[0];
    const int width = int(graph.k);
    const std::int32_t* ids = graph.ids;
    if (!on_device(ids)) {
        auto* copy = reinterpret_cast<std::int32_t*>(state.memory + state.plan.given[0].offset);
        const std::size_t row = std::size_t(width) * sizeof(std::int32_t);
        copy_in(copy, ids, state.n, row, row, state.resources, state.stream);
        ids = copy;
    }
    start_from_neighbors(state, ids, width);
}

}  // namespace

void initialize(BuildState& state) {
    const bool given = state.restart != nullptr || state.input.refines();
    const bool grows = !given && grows_trees(state.params.init);
    if (!grows || state.input.merges()) clear(state.lists, state.variant.candidates, state.n, state.stream);
    if (state.input.merges()) load_kept_columns(state);
    if (state.restart != nullptr) return start_from_neighbors(state, state.restart, state.restart_width);
    if (state.input.refines()) return start_from_graph(state);
    if (grows) return start_from_trees(state);
    // In a merge as many as the lists have room for beside what stays in them.
    start_from_neighbors(state, nullptr, state.input.merges() ? state.plan.length / 2 : state.plan.samples);
}

}  // namespace gnnd::cuda
