#pragma once
/// \file nearest.cuh
/// A block of objects against many others, all pairs: of every 256 the nearest.

#include "gnnd/cuda/append/insert.h"
#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/init.cuh"

namespace gnnd::cuda {

inline constexpr int kGroup = 1 << kColumnBits;  ///< columns whose numbers fit into a key

/// Points [first_row, first_row + rows) against groups of kGroup of the points [first_column, first_column + columns):
/// nearest[row * groups * take + group * take + j] = the object of the j-th nearest of the group, of those that are
/// among the nearest four in one of four quarters; kNoId where there are fewer. Points are not their own neighbours. A
/// block takes kBlockRows rows (x) and a group (y).
/// \param objects  of all points
template <class Engine>
__global__ void __launch_bounds__(2 * kBlockRows)
    nearest_kernel(Points points, Ranges ranges, const u32* objects, int take, u32* nearest) {
    const auto [first_row, rows, first_column, columns] = ranges;
    using Sum = typename Engine::Sum;
    using Keys = Key<Sum, false>;
    constexpr int kTiles = kPivotColumns / kTileColumns;
    __shared__ __align__(128) std::uint8_t tile[(kBlockRows + kPivotColumns) * kSlab];
    __shared__ u32 ids[kBlockRows + kPivotColumns];
    __shared__ Sum terms[kPivotColumns];
    const u32 begin = blockIdx.x * kBlockRows, group = blockIdx.y * kGroup;
    const int here = int(min(u32(kBlockRows), rows - begin)), size = int(min(u32(kGroup), columns - group));
    if (threadIdx.x < here) ids[threadIdx.x] = first_row + begin + threadIdx.x;

    const int stripe = threadIdx.x / kWarp * kTileRows, slabs = (points.row_bytes + kSlab - 1) / kSlab;
    const u32 row = begin + stripe + lane_id() / 4;  // this thread's, and row + 8
    const Sum factor = Keys::factor(points);
    NearestFour<Sum> best[2];
    best[0].clear();
    best[1].clear();
    for (int first = 0; first < size; first += kPivotColumns) {
        const int count = min(kPivotColumns, size - first);
        if (threadIdx.x < kPivotColumns) {
            const bool real = threadIdx.x < count;
            const u32 id = real ? first_column + group + first + threadIdx.x : 0;
            ids[kBlockRows + threadIdx.x] = id;
            terms[threadIdx.x] = real ? Keys::term(points, id, 0) : Keys::no_term();
        }
        __syncthreads();
        Sum sums[kTiles][4] = {};
        for (int slab = 0; slab < slabs; ++slab) {
            if (slabs > 1 || first == 0) load_rows<2 * kBlockRows>(tile, 0, ids, here, kBlockRows, points, slab);
            load_rows<2 * kBlockRows>(tile, kBlockRows, ids + kBlockRows, count, kPivotColumns, points, slab);
            commit_loads();
            wait_loads<0>();
            __syncthreads();
            const int steps = min(kSlab, points.row_bytes - slab * kSlab) / kStep;
            typename Engine::Rows a;
            Engine::load(a, tile, stripe, steps);
#pragma unroll
            for (int t = 0; t < kTiles; ++t) Engine::multiply(sums[t], a, tile, kBlockRows + t * kTileColumns, steps);
            __syncthreads();
        }
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                Sum keys[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int c = t * kTileColumns + lane_id() % 4 * 2 + i;
                    const bool other = c < count && first_row + row + r * 8 != ids[kBlockRows + c];
                    keys[i] = other ? Keys::make(sums[t][2 * r + i], factor, terms[c], first + c) : Keys::worst();
                }
                best[r].take(keys[0], keys[1]);
            }
        __syncthreads();
    }
    const u32 width = gridDim.y * take;
    for (int j = 0; j < take; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            Sum least = best[r].key[0];
            least = min(least, __shfl_xor_sync(kAllLanes, least, 1));
            least = min(least, __shfl_xor_sync(kAllLanes, least, 2));
            if (best[r].key[0] == least) best[r].drop_first();
            const u32 mine = row + r * 8;
            if (lane_id() % 4 == j % 4 && mine < rows)
                nearest[std::int64_t(mine) * width + blockIdx.y * take + j] =
                    Keys::valid(least) ? objects[first_column + group + u32(Keys::column(least))] : kNoId;
        }
}

}  // namespace gnnd::cuda
