// SPDX-License-Identifier: MIT
#pragma once
/// \file lock_update.cuh
/// Update::selective, the paper's: the nearest of each kind, inserted under a spinlock per segment (the paper's full
/// GNND) or per list (its GNND-r2).

#include "gnnd/cuda/update.cuh"

namespace gnnd::cuda {

struct LockUpdate : LockedLists {
    static constexpr int kKept = 1;
    static constexpr bool kOrderMatters = false;

    __device__ float bound_of(u32 u, u32& bias) const {
        bias = bias_of(u);
        return INFINITY;  // each segment has its own, read when it is known
    }

    template <int N>
    __device__ void take(const Offer (&offers)[N]) const {
        float last[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (offers[i].distance == INFINITY) continue;
            const int segment = lists.segment_of(offers[i].v);
            last[i] = __ldcg(&lists.distances[offers[i].u * std::int64_t(lists.length) +
                                              lists.place(lists.size_of(segment) - 1, segment)]);
        }
        u32 offered = 0, accepted = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            // Not nearer than the last but as near: ids decide, under the lock.
            u32 todo = __ballot_sync(kAllLanes, offers[i].distance < INFINITY && offers[i].distance <= last[i]);
            offered += __popc(todo);
            // Most are in the list already (measured): those need no lock. Some at once, to wait together.
            constexpr int kAtOnce = 4;
            while (todo != 0) {
                u32 u[kAtOnce], v[kAtOnce];
                float distance[kAtOnce];
                bool holds[kAtOnce];
#pragma unroll
                for (int j = 0; j < kAtOnce; ++j) {
                    const int from = __ffs(todo) - 1;  // -1: none left
                    todo &= todo - 1;
                    u[j] = __shfl_sync(kAllLanes, offers[i].u, from);
                    v[j] = __shfl_sync(kAllLanes, offers[i].v, from);
                    distance[j] = __shfl_sync(kAllLanes, offers[i].distance, from);
                    holds[j] = from < 0;
                }
                for (int first = 0; first < lists.size_of(0); first += kWarp)
#pragma unroll
                    for (int j = 0; j < kAtOnce; ++j) {
                        const int place = lists.place(first + lane_id(), lists.segment_of(v[j]));
                        if (place < lists.length)
                            holds[j] |=
                                (__ldcg(&lists.ids[u[j] * std::int64_t(lists.length) + place]) & ~kNewBit) == v[j];
                    }
#pragma unroll
                for (int j = 0; j < kAtOnce; ++j)
                    if (!__any_sync(kAllLanes, holds[j])) accepted += enter(u[j], v[j], distance[j]);
            }
        }
        if (lane_id() == 0) count(offered, accepted);
    }
};

}  // namespace gnnd::cuda
