// SPDX-License-Identifier: MIT
#pragma once
/// \file sort_update.cuh
/// Update::all, the paper's GNND-r1: every pair. A sample's partners are sorted and put into its list under
/// the list's spinlock.

#include "gnnd/cuda/update.cuh"

namespace gnnd::cuda {

struct SortUpdate : LockedLists {
    static constexpr int kKept = 0;  ///< every pair
    static constexpr bool kOrderMatters = false;

    __device__ float bound_of(u32 u, u32& bias) const {
        bias = bias_of(u);
        return __ldcg(&lists.distances[u * std::int64_t(lists.length) + lists.length - 1]);
    }

    /// Puts the partners of a sample into its list. By a whole warp.
    /// \param found  ranked() partners, distinct, in any order; kNothing where there is none
    /// \param room   shared memory for kMaxK entries
    template <int C>
    __device__ void take_row(u32 u, float bound, u64 (&found)[C], u64* room) const {
        u32 offered = 0, accepted = 0;
#pragma unroll
        for (int c = 0; c < C; ++c)
            offered += __popc(__ballot_sync(kAllLanes, found[c] != kNothing && ranked_distance(found[c]) <= bound));
        if (offered == 0) return;
        const int length = lists.length;
        u32* ids = lists.ids + std::int64_t(u) * length;
        float* distances = lists.distances + std::int64_t(u) * length;
        int power = kWarp;
        while (power < length) power *= 2;
        lock(u);
        for (int i = lane_id(); i < power; i += kWarp)
            room[i] = i < length ? ranked(__ldcg(&distances[i]), __ldcg(&ids[i])) : kNothing;
        __syncwarp();
        for (int i = 0; i < length; ++i) {
            const u32 id = ranked_id(room[i]) & ~kNewBit;
#pragma unroll
            for (int c = 0; c < C; ++c)
                if ((ranked_id(found[c]) & ~kNewBit) == id) found[c] = kNothing;
        }
        __syncwarp();
        sort_warp(found);
        // The nearest of two sorted sequences, the second one backwards, are a bitonic one.
#pragma unroll
        for (int c = 0; c < C; ++c)
            if (const int i = power - 1 - (c * kWarp + lane_id()); i >= 0) room[i] = min(room[i], found[c]);
        __syncwarp();
        for (int stride = power / 2; stride > 0; stride /= 2) {
            for (int i = lane_id(); i < power / 2; i += kWarp) {
                const int low = i / stride * 2 * stride + i % stride;
                const u64 a = room[low], b = room[low + stride];
                room[low] = min(a, b);
                room[low + stride] = max(a, b);
            }
            __syncwarp();
        }
        for (int i = lane_id(); i < length; i += kWarp) {
            __stcg(&ids[i], ranked_id(room[i]));
            __stcg(&distances[i], ranked_distance(room[i]));
        }
        unlock(u);
#pragma unroll
        for (int c = 0; c < C; ++c)
            accepted += __popc(__ballot_sync(kAllLanes, found[c] != kNothing && found[c] <= room[length - 1]));
        if (lane_id() == 0) count(offered, accepted);
        __syncwarp();
    }
};

}  // namespace gnnd::cuda
