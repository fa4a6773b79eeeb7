// SPDX-License-Identifier: MIT
#pragma once
/// \file hits.cuh
/// From the sums of a tile of pairs to the hits among them: the end of each tile of a sweep, the same for all kernels.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/sweep/sweep_args.h"

namespace gnnd::cuda {

template <class Sum>
__device__ Sum sum_of(u32 bits) {
    if constexpr (std::is_same_v<Sum, float>)
        return __uint_as_float(bits);
    else
        return int(bits);
}

/// Hides from the compiler that it has seen the value before: nothing computed from it earlier is kept in registers.
__device__ inline int reloaded(int value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ inline float reloaded(float value) {
    asm volatile("" : "+f"(value));
    return value;
}

/// max(most, a + b).
__device__ inline int raised(int most, int a, int b) {
    return __viaddmax_s32(a, b, most);  // one instruction on Hopper
}
__device__ inline float raised(float most, float a, float b) {
    return fmaxf(most, a + b);
}

/// The rows of a thread in a tile of sums as tensor instructions leave them (device/tile.cuh): two rows and two of
/// every eight columns.
/// \tparam Both  every pair may be a hit for its column, too
template <class Sum, bool Both>
struct HitFinder {
    static constexpr int kTiles = kPanelColumns / kTileColumns;
    using Sums = Sum[kTiles][4];

    const SweepArgs& args;
    u32 row;                 ///< of the set that is swept; the second is 8 below
    Sum least_of_row[2];     ///< -limit: what the sums for a row have to pass
    Sum least_of_column[2];  ///< -offset: and those for columns

    __device__ HitFinder(const SweepArgs& args_, u32 row_) : args(args_), row(row_) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const Threshold mine = args.of_rows[row + r * 8];
            least_of_row[r] = -sum_of<Sum>(mine.limit);
            least_of_column[r] = -sum_of<Sum>(mine.offset);
        }
    }

    /// \param terms     shared: of the tile's columns
    /// \param column    the first one
    /// \param diagonal  rows and columns are of the same panel: each pair is there twice
    __device__ void find(const Sums& sums, const Threshold* terms, u32 column, bool diagonal) const {
        Sum for_rows[2], for_columns[2];
        const Threshold* mine = terms + lane_id() % 4 * 2;
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            const uint4 two = *reinterpret_cast<const uint4*>(mine + t * kTileColumns);
            const Sum offset[2] = {sum_of<Sum>(two.x), sum_of<Sum>(two.z)};
            const Sum limit[2] = {sum_of<Sum>(two.y), sum_of<Sum>(two.w)};
#pragma unroll
            for (int r = 0; r < 2; ++r)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const Sum sum = sums[t][2 * r + i];
                    for_rows[r] = t + i == 0 ? sum + offset[i] : raised(for_rows[r], sum, offset[i]);
                    if (Both) for_columns[r] = t + i == 0 ? sum + limit[i] : raised(for_columns[r], sum, limit[i]);
                }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            if (for_rows[r] > least_of_row[r]) take_row(sums, r, terms, column, diagonal);
            if (Both && for_columns[r] > least_of_column[r]) take_columns(sums, r, terms, column, diagonal);
        }
    }

  private:
    // Rare: find out which of the pairs are hits.

    /// Calls use(column) for those of a row for which test(sum, threshold) holds.
    template <class Test, class Use>
    __device__ __forceinline__ void each(const Sums& sums, int r, const volatile Threshold* terms, u32 column,
                                         bool diagonal, const Test& test, const Use& use) const {
        const int first = lane_id() % 4 * 2;
        u32 bits = 0;  // of the thread's 2 kTiles columns
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                bits |= u32(test(reloaded(sums[t][2 * r + i]), terms[t * kTileColumns + first + i])) << (2 * t + i);
        for (; bits != 0; bits &= bits - 1) {
            const int bit = __ffs(bits) - 1;
            const u32 c = column + bit / 2 * kTileColumns + first + bit % 2;
            if (!diagonal || c > row + r * 8) use(c);
        }
    }

    __device__ __forceinline__ void take_row(const Sums& sums, int r, const Threshold* terms, u32 column,
                                             bool diagonal) const {
        const u32 here = row + r * 8, id = Both ? here : args.row_ids[here];
        each(
            sums, r, terms, column, diagonal,
            [&](Sum sum, const volatile Threshold& term) { return sum + sum_of<Sum>(term.offset) > least_of_row[r]; },
            [&](u32 c) {
                if (c != id) put_hit(args.hits, here, c);
            });
    }

    __device__ __forceinline__ void take_columns(const Sums& sums, int r, const Threshold* terms, u32 column,
                                                 bool diagonal) const {
        each(
            sums, r, terms, column, diagonal,
            [&](Sum sum, const volatile Threshold& term) { return sum + sum_of<Sum>(term.limit) > least_of_column[r]; },
            [&](u32 c) { put_hit(args.hits, c, row + r * 8); });
    }
};

}  // namespace gnnd::cuda
