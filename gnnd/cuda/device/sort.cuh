#pragma once
/// \file sort.cuh
/// Entries that compare as integers, and sorting them within a warp.

#include "gnnd/cuda/device/warp.cuh"

namespace gnnd::cuda {

inline constexpr u64 kNothing = ~u64(0);  ///< behind every entry

/// (distance, id) as an integer in the order of nearer(); the id's NEW bit decides last.
__device__ inline u64 ranked(float distance, u32 id) {
    const u32 bits = __float_as_uint(distance);
    const u32 ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return u64(ordered) << 32 | (id << 1 | id >> 31);
}
__device__ inline float ranked_distance(u64 entry) {
    const u32 ordered = u32(entry >> 32);
    return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}
__device__ inline u32 ranked_id(u64 entry) {
    return u32(entry) >> 1 | u32(entry) << 31;
}

/// Bitonic sort, ascending, of the 32 * C entries of a warp; entry c * 32 + lane is in entries[c].
template <int C>
__device__ void sort_warp(u64 (&entries)[C]) {
    const auto exchange = [](u64& low, u64& high, bool ascending) {
        const u64 least = min(low, high), most = max(low, high);
        low = ascending ? least : most;
        high = ascending ? most : least;
    };
#pragma unroll
    for (int size = 2; size <= C * kWarp; size *= 2)
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2)
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const bool ascending = ((c * kWarp + lane_id()) & size) == 0;
                if (stride >= kWarp) {
                    if ((c & stride / kWarp) == 0) exchange(entries[c], entries[c + stride / kWarp], ascending);
                } else {
                    const u64 other = __shfl_xor_sync(kAllLanes, entries[c], stride);
                    const bool keeps_least = ((lane_id() & stride) == 0) == ascending;
                    entries[c] = keeps_least ? min(entries[c], other) : max(entries[c], other);
                }
            }
}

}  // namespace gnnd::cuda
