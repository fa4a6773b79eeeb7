// SPDX-License-Identifier: MIT
#pragma once
/// \file assign_to_pivots.cuh
/// Step 1 of GNND, one level of a projection tree: every object goes to the nearest of its node's pivots. Trees are as
/// pynndescent's, but every node divides its objects by which of up to 256 random members is nearest, instead of two,
/// so that two or three levels of matrix products make a tree. Its leaves are the windows of join_window.cuh.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

/// Nearest by l2, whatever the metric: it keeps the parts even. points.bias holds squared norms.
template <class Arithmetic>
__global__ void __launch_bounds__(2 * kBlockRows) assign_to_pivots_kernel(Points points, AssignToPivotsArgs args) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, false>;
    using Memory = BlockMemory<Arithmetic>;
    __shared__ Memory memory;
    const std::int64_t begin = std::int64_t(blockIdx.x) * kBlockRows;
    const std::int64_t node = begin / args.node_size;
    const u32 members = u32(min(args.node_size, points.n - node * args.node_size));
    const int rows = int(min(std::int64_t(kBlockRows), points.n - begin));
    if (threadIdx.x < rows) memory.ids[threadIdx.x] = args.order[begin + threadIdx.x];

    const Sum factor = Keys::factor(points);
    const int stripe = threadIdx.x / kWarp * kTileRows;
    const auto own_term = [&](int row) { return Keys::term(points, args.order[begin + min(row, rows - 1)], 0); };
    const Sum own[2] = {own_term(stripe + lane_id() / 4), own_term(stripe + lane_id() / 4 + 8)};
    Best<Sum, 1> best[2];
    best[0].clear();
    best[1].clear();
    for (int first = 0; first < args.pivots; first += kBlockColumns) {
        const int columns = min(kBlockColumns, args.pivots - first);
        if (threadIdx.x < kBlockColumns) {
            const bool real = threadIdx.x < columns;
            const u32 hash = mix(args.seed + mix(u32(node) * kMaxPivots + first + threadIdx.x));
            const u32 id = real ? args.order[node * args.node_size + scaled(hash, members)] : 0;
            memory.ids[kBlockRows + threadIdx.x] = id;
            memory.terms[threadIdx.x] = real ? Keys::term(points, id, 0) : Keys::no_term();
        }
        __syncthreads();
        typename Memory::Sums sums = {};
        memory.multiply(sums, rows, columns, first == 0, points);
#pragma unroll
        for (int t = 0; t < Memory::kTiles; ++t) {
            const int c = t * kTileColumns + lane_id() % 4 * 2;
            Sum key[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                key[i] = Keys::make(sums[t][i], factor, Keys::pair_term(memory.terms[c + i % 2], own[i / 2]),
                                    first + c + i % 2);
            best[0].take(key[0], key[1]);
            best[1].take(key[2], key[3]);
        }
        __syncthreads();
    }
    const Best<Sum, 1> by_row = Best<Sum, 1>::halve(best[0], best[1], 1);
    const Best<Sum, 1> nearest = Best<Sum, 1>::halve(by_row, by_row, 2);
    const int row = stripe + lane_id() / 4 + lane_id() % 2 * 8;
    if (lane_id() % 4 < 2 && row < rows)
        args.keys[begin + row] = u32(node) * u32(args.pivots) + u32(Keys::column(nearest.key[0]));
}

}  // namespace gnnd::cuda
