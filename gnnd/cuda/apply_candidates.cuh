// SPDX-License-Identifier: MIT
#pragma once
/// \file apply_candidates.cuh
/// Merges buffered candidates into the lists, a warp an object: drops what cannot enter and what the list or another
/// candidate has already, sorts the rest, and merges two sorted sequences.

#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

inline constexpr int kApplyWarps = 8;

/// The ids that a warp has seen, as bits of their hashes: an id whose bit is not set is new for sure.
template <int Words>
struct SeenIds {
    u32 words[Words];

    __device__ void clear() {
        for (int i = lane_id(); i < Words; i += kWarp) words[i] = 0;
    }
    /// True if it may have been there.
    __device__ bool add(u32 id) {
        const u32 hash = id * 0x9e3779b1u, bit = 1u << (hash >> 27);  // the upper bits of a product are well mixed
        return atomicOr(&words[(hash >> 15) % Words], bit) & bit;
    }
};

/// Chunks: the lists have at most 32 * Chunks entries.
template <int Chunks>
__global__ void __launch_bounds__(kApplyWarps* kWarp)
    apply_candidates_kernel(Lists lists, Candidates candidates, std::int64_t n, const StopFlag* stop,
                            Counters* counters) {
    constexpr int kAtOnce = 2;  // candidates a lane
    __shared__ u64 rooms[kApplyWarps][kAtOnce * kWarp];
    __shared__ SeenIds<Chunks <= 2 ? 64 : 32 * Chunks> seen_ids[kApplyWarps];
    const std::int64_t object = std::int64_t(blockIdx.x) * kApplyWarps + threadIdx.x / kWarp;
    if (object >= n || stop->raised) return;
    const u32 offered = candidates.counts[object];
    if (offered == 0) return;
    const int count = min(int(offered), candidates.capacity), length = lists.length, lane = lane_id();
    u64* const room = rooms[threadIdx.x / kWarp];
    auto& seen = seen_ids[threadIdx.x / kWarp];
    const u64* queue = candidates.entries + object * candidates.capacity;
    u32* list_ids = lists.ids + object * length;
    float* list_distances = lists.distances + object * length;
    const auto same_id = [](u64 entry, u32 id) { return u32(entry) >> 1 == id; };

    u64 entries[Chunks];
    seen.clear();
    __syncwarp();
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        entries[c] = place < length ? ranked(list_distances[place], list_ids[place]) : kNothing;
        if (place < length) seen.add(u32(entries[c]) >> 1);
    }
    // Not from lists.bounds: where candidates without room were inserted at once, the list has a nearer one.
    const auto last_entry = [&] {
        u64 mine = 0;
#pragma unroll
        for (int c = 0; c < Chunks; ++c)
            if (c * kWarp + lane == length - 1) mine = entries[c];
        return __shfl_sync(kAllLanes, mine, (length - 1) % kWarp);
    };
    float bound = ranked_distance(last_entry());
    int accepted = 0;
    const auto join = [&](auto& sorted, int count) {
        sort_warp(sorted, count);
        keep_least(entries, sorted);
        const u64 last = last_entry();
        bound = ranked_distance(last);
#pragma unroll
        for (int c = 0; c < Chunks; ++c)
            if (c * kWarp + lane >= length) entries[c] = kNothing;
        for (const u64 entry : sorted) accepted += __popc(__ballot_sync(kAllLanes, entry != kNothing && entry <= last));
    };
    __syncwarp();
    for (int first = 0; first < count; first += kAtOnce * kWarp) {
        u64 found[kAtOnce];
        bool check[kAtOnce];
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
            const int at = first + c * kWarp + lane;
            const u64 candidate = at < count ? queue[at] : pack(INFINITY, kNoId);
            // As near as the last one: ids decide.
            const bool near = distance_of(candidate) <= bound && distance_of(candidate) < INFINITY;
            found[c] = near ? ranked(distance_of(candidate), id_of(candidate) | kNewBit) : kNothing;
            check[c] = near && seen.add(id_of(candidate));
        }
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c)
            for (u32 todo = __ballot_sync(kAllLanes, check[c]); todo != 0; todo &= todo - 1) {
                const int from = __ffs(todo) - 1;
                const u32 id = __shfl_sync(kAllLanes, u32(found[c]), from) >> 1;
                bool known = false;
#pragma unroll
                for (int i = 0; i < Chunks; ++i) known |= same_id(entries[i], id);
#pragma unroll
                for (int i = 0; i < kAtOnce; ++i) known |= same_id(found[i], id) && !(i == c && lane == from);
                if (__any_sync(kAllLanes, known) && lane == from) found[c] = kNothing;
            }
        // Those that are left, close together: mostly a lane each is enough.
        int left = 0;
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
            const u32 kept = __ballot_sync(kAllLanes, found[c] != kNothing);
            if (found[c] != kNothing) room[left + rank_in(kept)] = found[c];
            left += __popc(kept);
        }
        __syncwarp();
        if (left > kWarp) {
            u64 both[kAtOnce] = {room[lane], kWarp + lane < left ? room[kWarp + lane] : kNothing};
            join(both, left);
        } else if (left > 0) {
            u64 one[1] = {lane < left ? room[lane] : kNothing};
            join(one, left);
        }
        __syncwarp();
    }
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        if (accepted != 0 && place < length) {
            list_ids[place] = ranked_id(entries[c]);
            list_distances[place] = ranked_distance(entries[c]);
        }
    }
    if (lane == 0) {
        candidates.counts[object] = 0;
        lists.bounds[object] = bound;
        Counters& sum = counters[blockIdx.x % kSpread];
        atomicAdd(&sum.offered, u64(offered));
        atomicAdd(&sum.accepted, u64(accepted));
        if (offered > u32(candidates.capacity)) atomicAdd(&sum.lost, u64(offered - candidates.capacity));
    }
}

}  // namespace gnnd::cuda
