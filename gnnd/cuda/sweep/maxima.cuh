// SPDX-License-Identifier: MIT
#pragma once
/// \file maxima.cuh
/// From the sums of a row with a sample of columns to the largest ones: the end of each tile of a sweep that looks for
/// bounds, not for hits.

#include "gnnd/cuda/sweep/hits.cuh"

namespace gnnd::cuda {

/// The rows of a thread, as in HitFinder. Of the columns of a block's tiles each belongs to one of kMaxima classes, by
/// its place in a tile, and of each class the largest sum is kept, in a register. Which of a row's nearest are in one
/// class is chance, so that the r-th largest of these maxima is little less than the r-th largest sum.
/// \tparam Share  so many blocks have the same rows and every Share-th tile of their columns
template <class Sum, u32 Share>
struct MaximaFinder {
    static constexpr int kTiles = kPanelColumns / kTileColumns, kKept = kMaxima / kTileColumns;

    const SweepArgs& args;
    u32 row;  ///< the second is 8 below
    Sum most[kKept][4];

    __device__ MaximaFinder(const SweepArgs& args_, HitQueue::Places&, u32 row_) : args(args_), row(row_) {
        constexpr Sum kLeast = std::is_same_v<Sum, float> ? Sum(-INFINITY) : Sum(-(1 << 30));
#pragma unroll
        for (int i = 0; i < 4 * kKept; ++i) most[i / 4][i % 4] = kLeast;
    }

    /// \param terms  shared: of the tile's columns
    __device__ void find(const Sum (&sums)[kTiles][4], const Threshold* terms, u32, bool) {
        const Threshold* mine = terms + lane_id() % 4 * 2;
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const Sum offset = sum_of<Sum>(mine[t * kTileColumns + i].offset);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    Sum& largest = most[t % kKept][2 * r + i];
                    largest = raised(largest, sums[t][2 * r + i], offset);
                }
            }
    }

    /// After the last tile.
    __device__ void end() {
        const u32 groups = gridDim.y * Share, group = blockIdx.y * Share + blockIdx.x % Share;
        constexpr int kEach = 2 * kKept;  // of a lane and a row
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            if (row + r * 8 >= args.rows) continue;
            u32* to = args.maxima + (u64(row + r * 8) * groups + group) * kMaxima + lane_id() % 4 * kEach;
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const Sum largest = most[j / 2][2 * r + j % 2];
                if constexpr (std::is_same_v<Sum, float>)
                    to[j] = __float_as_uint(largest);
                else
                    to[j] = u32(largest);
            }
        }
    }
};

}  // namespace gnnd::cuda
