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

/// Hits that a warp has found and not put into memory yet. An atomic that names the place of a hit is far away: 32 of
/// them go together, each lane's own. All lanes take part in everything.
struct HitQueue {
    using Places = u64[2 * kWarp];  ///< shared
    u64* places;
    u32 count = 0;

    __device__ void put(const Candidates& hits, bool real, u32 row, u32 id) {
        const u32 all = __ballot_sync(kAllLanes, real);
        if (real) places[count + rank_in(all)] = u64(row) << 32 | id;
        count += __popc(all);
        if (count >= kWarp) flush(hits);
    }
    /// The last 32, or all if there are fewer.
    __device__ void flush(const Candidates& hits) {
        __syncwarp();
        const u32 left = count > kWarp ? count - kWarp : 0, mine = left + lane_id();
        if (mine < count) put_hit(hits, u32(places[mine] >> 32), u32(places[mine]));
        count = left;
        __syncwarp();
    }
};

/// The rows of a thread in a tile of sums as tensor instructions leave them (device/tile.cuh): two rows and two of
/// every eight columns.
/// \tparam Both  every pair may be a hit for its column, too
template <class Sum, bool Both>
struct HitFinder {
    static constexpr int kTiles = kPanelColumns / kTileColumns;
    /// Tiles of eight columns that are looked at together: where a hit is among them, all are looked at again.
    static constexpr int kTilesAtOnce = 4;
    using Sums = Sum[kTiles][4];

    const SweepArgs& args;
    HitQueue queue;
    u32 row;                 ///< of the set that is swept; the second is 8 below
    Sum least_of_row[2];     ///< -limit: what the sums for a row have to pass
    Sum least_of_column[2];  ///< -offset: and those for columns

    /// \param places  the warp's
    __device__ HitFinder(const SweepArgs& args_, HitQueue::Places& places, u32 row_)
        : args(args_), queue{places}, row(row_) {
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
    __device__ void find(const Sums& sums, const Threshold* terms, u32 column, bool diagonal) {
        const Threshold* mine = terms + lane_id() % 4 * 2;
#pragma unroll
        for (int first = 0; first < kTiles; first += kTilesAtOnce) {
            Sum for_rows[2], for_columns[2];
#pragma unroll
            for (int t = first; t < first + kTilesAtOnce; ++t) {
                const uint4 two = *reinterpret_cast<const uint4*>(mine + t * kTileColumns);
                const Sum offset[2] = {sum_of<Sum>(two.x), sum_of<Sum>(two.z)};
                const Sum limit[2] = {sum_of<Sum>(two.y), sum_of<Sum>(two.w)};
#pragma unroll
                for (int r = 0; r < 2; ++r)
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const bool start = t == first && i == 0;
                        const Sum sum = sums[t][2 * r + i];
                        for_rows[r] = start ? sum + offset[i] : raised(for_rows[r], sum, offset[i]);
                        if (Both) for_columns[r] = start ? sum + limit[i] : raised(for_columns[r], sum, limit[i]);
                    }
            }
            Seen seen{};
            bool any = false;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                any |= seen.for_row[r] = for_rows[r] > least_of_row[r];
                if (Both) any |= seen.for_column[r] = for_columns[r] > least_of_column[r];
            }
            if (__any_sync(kAllLanes, any)) take(seen, sums, first, terms, column, diagonal);
        }
    }

    /// After the last tile.
    __device__ void end() {
        queue.flush(args.hits);
    }

  private:
    /// For which of its rows, and for columns of which of them, a lane has seen hits in a group.
    struct Seen {
        bool for_row[2], for_column[2];
    };
    static constexpr int kColumns = 2 * kTilesAtOnce;  ///< of a lane in a group

    /// Finds out which of a group's pairs are hits. Mostly there is one: what no lane has seen is not looked at again.
    __device__ __forceinline__ void take(const Seen& seen, const Sums& sums, int first, const volatile Threshold* terms,
                                         u32 column, bool diagonal) {
        const volatile Threshold* mine = terms + first * kTileColumns + lane_id() % 4 * 2;
        u32 bits = 0;  // for rows, and behind them for columns: of two rows each kColumns
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            if (__any_sync(kAllLanes, seen.for_row[r]))
#pragma unroll
                for (int c = 0; c < kColumns; ++c)
                    if (sum_at(sums, first, r, c) + sum_of<Sum>(at(mine, c).offset) > least_of_row[r])
                        bits |= 1u << (r * kColumns + c);
            if (Both && __any_sync(kAllLanes, seen.for_column[r]))
#pragma unroll
                for (int c = 0; c < kColumns; ++c)
                    if (sum_at(sums, first, r, c) + sum_of<Sum>(at(mine, c).limit) > least_of_column[r])
                        bits |= 1u << ((2 + r) * kColumns + c);
        }
        const u32 first_column = column + u32(first) * kTileColumns + lane_id() % 4 * 2;
        while (__any_sync(kAllLanes, bits != 0)) {
            const int bit = max(__ffs(bits) - 1, 0), c = bit % kColumns, r = bit / kColumns;
            const u32 there = first_column + c / 2 * kTileColumns + c % 2, here = row + r % 2 * 8;
            // Of a panel with itself each pair is there twice; of chosen rows each is there as a column, too.
            const bool real = bits != 0 && !(diagonal && there <= here) && (Both || there != args.row_ids[here]);
            queue.put(args.hits, real, r < 2 ? here : there, r < 2 ? there : here);
            bits &= bits - 1;
        }
    }

    static __device__ Sum sum_at(const Sums& sums, int first, int r, int c) {
        return reloaded(sums[first + c / 2][2 * r + c % 2]);
    }
    static __device__ const volatile Threshold& at(const volatile Threshold* mine, int c) {
        return mine[c / 2 * kTileColumns + c % 2];
    }
};

}  // namespace gnnd::cuda
