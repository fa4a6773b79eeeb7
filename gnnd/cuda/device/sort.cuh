// SPDX-License-Identifier: MIT
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

/// Keeps the lesser (or the greater) of this lane's entry and that of the lane on the other side of the bit `stride`.
__device__ inline void exchange_lanes(u64& entry, int stride, bool keeps_least) {
    const u64 other = __shfl_xor_sync(kAllLanes, entry, stride);
    if ((entry > other) == keeps_least) entry = other;
}
__device__ inline void exchange_lanes(u32& entry, int stride, bool keeps_least) {
    const u32 other = __shfl_xor_sync(kAllLanes, entry, stride);
    entry = keeps_least ? min(entry, other) : max(entry, other);
}
template <class Entry>
__device__ inline void order(Entry& low, Entry& high, bool ascending) {
    const Entry a = low, b = high;
    const bool swap = (a > b) == ascending;
    low = swap ? b : a;
    high = swap ? a : b;
}

/// Bitonic sort, ascending, of the 32 * C entries of a warp; entry c * 32 + lane is in entries[c]. Those from place
/// `count` on, the same on all lanes, are no less than those before, and stay there in any order.
template <class Entry, int C>
__device__ void sort_warp(Entry (&entries)[C], int count = C * kWarp) {
#pragma unroll
    for (int size = 2; size <= C * kWarp; size *= 2) {
        if (size / 2 >= count) return;  // they are sorted, and what follows is
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2)
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const bool ascending = ((c * kWarp + lane_id()) & size) == 0;
                if (stride >= kWarp) {
                    if ((c & stride / kWarp) == 0) order(entries[c], entries[c + stride / kWarp], ascending);
                } else
                    exchange_lanes(entries[c], stride, ((lane_id() & stride) == 0) == ascending);
            }
    }
}

/// The same in a third of the instructions: numbers of 32 bits are sorted, an entry's upper half (a distance, a hash)
/// without its last bits and behind it the entry's place. Where that is not the order of the entries, which is rare but
/// for equal distances, they are sorted after all.
/// \param room  shared, 32 * C entries of the warp
template <int C>
__device__ void sort_by_upper_half(u64 (&entries)[C], u64* room, int count) {
    constexpr u32 kPlaces = C * kWarp - 1;
    u32 keys[C];
#pragma unroll
    for (int c = 0; c < C; ++c) {
        const u32 place = c * kWarp + lane_id();
        keys[c] = (u32(entries[c] >> 32) & ~kPlaces) | place;
        room[place] = entries[c];
    }
    sort_warp(keys, count);
    __syncwarp();
    bool sorted = true;
    u64 last = 0;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        entries[c] = room[keys[c] & kPlaces];
        const u64 left = __shfl_up_sync(kAllLanes, entries[c], 1);
        sorted &= (lane_id() > 0 ? left : last) <= entries[c];
        last = __shfl_sync(kAllLanes, entries[c], kWarp - 1);
    }
    if (!__all_sync(kAllLanes, sorted)) sort_warp(entries, count);
}

/// Keeps the least 32 * C of two sorted sequences, sorted. C is a power of two; `other` ends with kNothing.
template <int C, int Others>
__device__ void keep_least(u64 (&entries)[C], const u64 (&other)[Others]) {
    // The lesser of one sequence and the other one backwards are the least of both, and bitonic.
#pragma unroll
    for (int c = 0; c < C && c < Others; ++c) {
        const u64 backwards = __shfl_xor_sync(kAllLanes, other[c], kWarp - 1);
        entries[C - 1 - c] = min(entries[C - 1 - c], backwards);
    }
#pragma unroll
    for (int stride = C * kWarp / 2; stride > 0; stride /= 2)
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (stride >= kWarp) {
                if ((c & stride / kWarp) == 0) order(entries[c], entries[c + stride / kWarp], true);
            } else
                exchange_lanes(entries[c], stride, (lane_id() & stride) == 0);
        }
}

}  // namespace gnnd::cuda
