// SPDX-License-Identifier: MIT
#pragma once
/// \file init_neighbors.cuh
/// Step 1 of GNND without trees: neighbours that an init of gnnd/init.h picks, random ones as in the paper; and
/// refine()'s start, the neighbours of a graph.

#include "gnnd/cuda/device/tile.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

inline constexpr int kInitWarps = 8;

/// In place of a struct of gnnd::inits: neighbours are those of args.graph.
struct GivenGraph {};

/// One warp an object. Neighbours that do not count are left out.
/// \tparam Source  a struct of gnnd::inits that picks neighbours, or GivenGraph
template <class Arithmetic, class Source>
__global__ void __launch_bounds__(kWarp* kInitWarps) init_neighbors_kernel(Points points, InitNeighborsArgs args) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kInitWarps + threadIdx.x / kWarp;
    if (object >= points.n) return;
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, false>;
    for (int j = 0; j < args.count; ++j) {
        u32 id = kNoId;
        if constexpr (std::is_same_v<Source, GivenGraph>) {
            id = u32(args.graph[object * args.width + args.first + j]);
        } else {
            const u32 hash = mix(args.seed + mix(u32(object)) + mix(u32(j + 1) * 0x9e3779b1u));
            id = points.pairs.first_partner(u32(object)) +
                 Source::pick(u32(object), args.first + j, points.pairs.partners(u32(object), u32(points.n)), hash);
        }
        if (id == u32(object) || id >= u32(points.n)) id = kNoId;
        float distance = INFINITY;
        if (id != kNoId) {
            const Sum sum = Arithmetic::pair(points, u32(object), id), factor = Keys::factor(points);
            const Sum term = Keys::term(points, id, 0), row_term = Keys::term(points, u32(object), 0);
            Sum key = Keys::make(sum, factor, Keys::pair_term(term, row_term), 0);
            if (args.ordered) key = Keys::lowered(key, sum * factor, term, row_term);
            distance = Keys::distance(points, key, row_term);
        }
        if (lane_id() == 0) args.candidates.entries[object * args.candidates.capacity + j] = pack(distance, id);
    }
    if (lane_id() == 0) args.candidates.counts[object] = u32(args.count);
}

}  // namespace gnnd::cuda
