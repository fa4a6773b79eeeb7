// SPDX-License-Identifier: MIT
#pragma once
/// \file sample.cuh
/// Step 2 of GNND, ParallelSample: the first p NEW and the first p OLD entries of every list; the NEW ones are OLD from
/// then on. Every object is appended to the reverse samples of those that it took, or only counted there, for
/// reverse.cuh to choose. One warp an object.
///
/// In GGM entries of the other set are NEW until they are sampled, and then of no use as OLD ones: their pairs with NEW
/// samples lie inside of that set. So OLD samples are of the object's own set only.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

inline constexpr int kSampleWarps = 8;

__global__ void __launch_bounds__(kSampleWarps* kWarp)
    sample_kernel(Lists lists, Samples samples, Filter filter, detail::Pairs pairs, const u32* visit, std::int64_t n,
                  const StopFlag* stop) {
    __shared__ u32 words[kSampleWarps][kFilterWords], used[kSampleWarps][kFilterWords];
    const int warp = threadIdx.x / kWarp;
    const std::int64_t place = std::int64_t(blockIdx.x) * kSampleWarps + warp;
    if (place >= n) return;
    const std::int64_t object = visit != nullptr ? std::int64_t(visit[place]) : place;
    if (stop->raised) return;
    const int p = samples.p;
    u32* list = lists.ids + object * lists.length;
    for (int i = lane_id(); i < kFilterWords; i += kWarp) words[warp][i] = used[warp][i] = 0;
    __syncwarp();
    int taken[2] = {0, 0};      // NEW, OLD
    constexpr int kAtOnce = 2;  // two rows of lanes at a time, so that their atomics wait together
    for (int first = 0; first < lists.length; first += kAtOnce * kWarp) {
        u32 entries[kAtOnce], id[kAtOnce], room[kAtOnce];
        int at[kAtOnce];
        bool old[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
            const int place = first + i * kWarp + lane_id();
            entries[i] = place < lists.length ? list[place] : kNoId;
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
            const u32 entry = entries[i];
            id[i] = entry & ~kNewBit;
            old[i] = entry < kNewBit;
            const u32 fresh = __ballot_sync(kAllLanes, !old[i]);
            const bool useful = entry != kNoId && (!old[i] || pairs.all() || !pairs.count(u32(object), id[i]));
            const u32 known = __ballot_sync(kAllLanes, old[i] && useful);
            at[i] = taken[old[i]] + rank_in(old[i] ? known : fresh);
            if (!useful) at[i] = p;
            taken[0] += __popc(fresh);
            taken[1] += __popc(known);
            if (at[i] < p) room[i] = atomicAdd(&samples.reverse[2 * std::int64_t(id[i]) + old[i]], 1u);
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) filter.add(words[warp], used[warp], id[i]);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
            if (at[i] >= p) continue;
            samples.ids[(object * 2 + old[i]) * 2 * p + at[i]] = id[i];
            if (!old[i]) list[first + i * kWarp + lane_id()] = id[i];
            if (samples.offsets == nullptr && room[i] < u32(p))
                samples.ids[(std::int64_t(id[i]) * 2 + old[i]) * 2 * p + p + room[i]] = u32(object);
        }
    }
    __syncwarp();
    if (filter.words != nullptr)
        for (int i = lane_id(); i < kFilterWords; i += kWarp) filter.words[object * kFilterWords + i] = words[warp][i];
    if (lane_id() == 0) samples.own[object] = u32(min(taken[0], p)) | u32(min(taken[1], p)) << 16;
}

}  // namespace gnnd::cuda
