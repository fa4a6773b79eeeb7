// SPDX-License-Identifier: MIT
#pragma once
/// \file fill_lists.cuh
/// Step 1 of GNND, after the windows of some trees: lists that were empty get what was found, the nearest first. A warp
/// an object sorts all candidates at once, which takes half as long as applying them in turn, where each batch has to
/// find its places among those before (apply_candidates.cuh).

#include "gnnd/cuda/device/seen_ids.cuh"
#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

inline constexpr int kFillWarps = 8;

/// All places of the lists and their bounds are written, the counts of candidates are 0 afterwards.
/// \tparam Chunks  there is room for at most 32 * Chunks candidates an object
template <int Chunks>
__global__ void __launch_bounds__(kFillWarps* kWarp)
    fill_lists_kernel(Lists lists, Candidates candidates, std::int64_t n, Counters* counters) {
    __shared__ SeenIds<32 * Chunks> seen_ids[kFillWarps];
    __shared__ u64 rooms[kFillWarps][Chunks * kWarp];
    const std::int64_t object = std::int64_t(blockIdx.x) * kFillWarps + threadIdx.x / kWarp;
    if (object >= n) return;
    const int count = int(candidates.counts[object]), length = lists.length, lane = lane_id();
    const u64* queue = candidates.entries + object * candidates.capacity;
    auto& seen = seen_ids[threadIdx.x / kWarp];
    seen.clear();

    u64 entries[Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const u64 candidate = c * kWarp + lane < count ? queue[c * kWarp + lane] : pack(INFINITY, kNoId);
        const float distance = distance_of(candidate);
        entries[c] = distance < INFINITY ? ranked(distance, id_of(candidate) | kNewBit) : kNothing;
    }
    sort_by_upper_half(entries, rooms[threadIdx.x / kWarp], count);

    // What several trees have found stands side by side.
    u64 before = kNothing;
    bool again[Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const u64 left = __shfl_up_sync(kAllLanes, entries[c], 1);
        again[c] = entries[c] == (lane > 0 ? left : before);
        before = __shfl_sync(kAllLanes, entries[c], kWarp - 1);
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        if (again[c]) entries[c] = kNothing;
        again[c] = entries[c] != kNothing && seen.add(u32(entries[c]) >> 1);
    }
    // Should a pair come with two distances, where floats were summed in another order, the lesser stays.
#pragma unroll
    for (int c = 0; c < Chunks; ++c)
        for (u32 todo = __ballot_sync(kAllLanes, again[c]); todo != 0; todo &= todo - 1) {
            const u32 id = __shfl_sync(kAllLanes, u32(entries[c]), __ffs(int(todo)) - 1) >> 1;
            bool nearer = false;
#pragma unroll
            for (int other = 0; other < Chunks; ++other) {
                const u32 same = __ballot_sync(kAllLanes, entries[other] != kNothing && u32(entries[other]) >> 1 == id);
                if ((same >> lane & 1) && (nearer || rank_in(same) > 0)) entries[other] = kNothing;
                nearer |= same != 0;
            }
        }

    u32* const list_ids = lists.ids + object * length;
    float* const list_distances = lists.distances + object * length;
    int taken = 0;
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const u32 left = __ballot_sync(kAllLanes, entries[c] != kNothing);
        const int place = taken + rank_in(left);
        if (entries[c] != kNothing && place < length) {
            list_ids[place] = ranked_id(entries[c]);
            list_distances[place] = ranked_distance(entries[c]);
            if (place == length - 1) lists.bound(object) = ranked_distance(entries[c]);
        }
        taken += __popc(left);
    }
    for (int place = taken + lane; place < length; place += kWarp) {
        list_ids[place] = kNoId;
        list_distances[place] = INFINITY;
    }
    if (lane == 0) {
        if (taken < length) lists.bound(object) = INFINITY;
        candidates.counts[object] = 0;
        Counters& sum = counters[blockIdx.x % kSpread];
        atomicAdd(&sum.offered, u64(count));
        atomicAdd(&sum.accepted, u64(min(taken, length)));
    }
}

}  // namespace gnnd::cuda
