#pragma once
/// \file nearest.cuh
/// A block of objects against many others, all pairs: of every 256 the nearest.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/init.cuh"

namespace gnnd::cuda {

inline constexpr int kGroup = 1 << kColumnBits;  ///< columns whose numbers fit into a key

/// Objects first_row, first_row + 1, ... against groups of kGroup of the objects first_column, first_column + 1, ...:
/// places[row * groups * take + group * take + j] = the number of the j-th nearest of the group among all columns, of
/// those that are among the nearest four in one of four quarters; kNoId where there are fewer. Objects are not their
/// own neighbours. A block takes kBlockRows rows (x) and a group (y).
template <class Engine>
__global__ void __launch_bounds__(2 * kBlockRows)
    nearest_kernel(Points points, u32 first_row, u32 rows, u32 first_column, u32 columns, int take, u32* places) {
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
    NearestFour<Sum> nearest[2];
    nearest[0].clear();
    nearest[1].clear();
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
                nearest[r].take(keys[0], keys[1]);
            }
        __syncthreads();
    }
    const u32 width = gridDim.y * take;
    for (int j = 0; j < take; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            Sum best = nearest[r].key[0];
            best = min(best, __shfl_xor_sync(kAllLanes, best, 1));
            best = min(best, __shfl_xor_sync(kAllLanes, best, 2));
            if (nearest[r].key[0] == best) nearest[r].drop_first();
            const u32 mine = row + r * 8;
            if (lane_id() % 4 == j % 4 && mine < rows)
                places[std::int64_t(mine) * width + blockIdx.y * take + j] =
                    Keys::valid(best) ? group + u32(Keys::column(best)) : kNoId;
        }
}

}  // namespace gnnd::cuda
