// SPDX-License-Identifier: MIT
#pragma once
/// \file find_nearest.cuh
/// A block of objects against many others, all pairs: of every 256 the nearest.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

/// Of each group those nearest that are among the nearest four in one of four quarters. Points are not their own
/// neighbours. A block takes kBlockRows rows (x) and a group (y).
template <class Arithmetic>
__global__ void __launch_bounds__(2 * kBlockRows) find_nearest_kernel(Points points, FindNearestArgs args) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, false>;
    using Memory = BlockMemory<Arithmetic>;
    __shared__ Memory memory;
    const u32 begin = blockIdx.x * kBlockRows, group = blockIdx.y * kColumnGroup;
    const int here = int(min(u32(kBlockRows), args.rows - begin)),
              size = int(min(u32(kColumnGroup), args.columns - group));
    if (threadIdx.x < here) memory.ids[threadIdx.x] = args.first_row + begin + threadIdx.x;

    const int stripe = threadIdx.x / kWarp * kTileRows;
    const u32 row = begin + stripe + lane_id() / 4;  // this thread's, and row + 8
    const Sum factor = Keys::factor(points);
    const auto own_term = [&](u32 at) { return Keys::term(points, args.first_row + min(at, args.rows - 1), 0); };
    const Sum own[2] = {own_term(row), own_term(row + 8)};
    NearestFour<Sum> best[2];
    best[0].clear();
    best[1].clear();
    for (int first = 0; first < size; first += kBlockColumns) {
        const int count = min(kBlockColumns, size - first);
        if (threadIdx.x < kBlockColumns) {
            const bool real = threadIdx.x < count;
            const u32 id = real ? args.first_column + group + first + threadIdx.x : 0;
            memory.ids[kBlockRows + threadIdx.x] = id;
            memory.terms[threadIdx.x] = real ? Keys::term(points, id, 0) : Keys::no_term();
        }
        __syncthreads();
        typename Memory::Sums sums = {};
        memory.multiply(sums, here, count, first == 0, points);
#pragma unroll
        for (int t = 0; t < Memory::kTiles; ++t)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                Sum keys[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int c = t * kTileColumns + lane_id() % 4 * 2 + i;
                    const bool other = c < count && args.first_row + row + r * 8 != memory.ids[kBlockRows + c];
                    keys[i] = other ? Keys::make(sums[t][2 * r + i], factor, Keys::pair_term(memory.terms[c], own[r]),
                                                 first + c)
                                    : Keys::worst();
                }
                best[r].take(keys[0], keys[1]);
            }
        __syncthreads();
    }
    const u32 width = gridDim.y * args.take;
    for (int j = 0; j < args.take; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            Sum least = best[r].key[0];
            least = min(least, __shfl_xor_sync(kAllLanes, least, 1));
            least = min(least, __shfl_xor_sync(kAllLanes, least, 2));
            if (best[r].key[0] == least) best[r].drop_first();
            const u32 mine = row + r * 8;
            if (lane_id() % 4 == j % 4 && mine < args.rows)
                args.nearest[std::int64_t(mine) * width + blockIdx.y * args.take + j] =
                    Keys::valid(least) ? args.objects[args.first_column + group + u32(Keys::column(least))] : kNoId;
        }
}

}  // namespace gnnd::cuda
