// SPDX-License-Identifier: MIT
#pragma once
/// \file apply_candidates.cuh
/// Applies buffered candidates to the lists, a warp an object: drops what cannot enter, sorts the rest, finds the
/// place of each in the list, drops what stands there already or comes twice, and moves the entries behind.

#include "gnnd/cuda/device/seen_ids.cuh"
#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// Warps of a block: as many as have room for their lists in 48 KB of shared memory.
__host__ __device__ constexpr int apply_warps(int chunks) {
    return chunks <= 8 ? 8 : 2;
}

/// Chunks: the lists have at most 32 * Chunks entries.
template <int Chunks>
__global__ void __launch_bounds__(apply_warps(Chunks) * kWarp)
    apply_candidates_kernel(Lists lists, Candidates candidates, std::int64_t n, const StopFlag* stop,
                            Counters* counters) {
    constexpr int kWarps = apply_warps(Chunks), kPlaces = Chunks * kWarp;
    __shared__ u64 rows[kWarps][kPlaces + kWarp];  // a list, and behind it candidates
    __shared__ SeenIds<Chunks <= 2 ? 64 : 32 * Chunks> seen_ids[kWarps];
    const std::int64_t object = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (object >= n || stop->raised) return;
    const u32 offered = candidates.counts[object];
    if (offered == 0) return;
    const int count = min(int(offered), candidates.capacity), length = lists.length, lane = lane_id();
    u64 *const row = rows[threadIdx.x / kWarp], *const room = row + kPlaces;
    auto& seen = seen_ids[threadIdx.x / kWarp];
    const u64* queue = candidates.entries + object * candidates.capacity;
    u32* list_ids = lists.ids + object * length;
    float* list_distances = lists.distances + object * length;
    const auto same_id = [](u64 entry, u32 id) { return u32(entry) >> 1 == id; };

    // All loads before the first use: they wait for memory together.
    float distances[Chunks];
    u32 ids[Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        distances[c] = place < length ? list_distances[place] : INFINITY;
        ids[c] = place < length ? list_ids[place] : kNoId;
    }
    const u64 first_candidate = lane < count ? queue[lane] : pack(INFINITY, kNoId);
    seen.clear();
    __syncwarp();
    u64 entries[Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        entries[c] = place < length ? ranked(distances[c], ids[c]) : kNothing;
        seen.add(ids[c] & ~kNewBit);
        row[place] = entries[c];
    }
    // Not from lists.bounds: where candidates without room were inserted at once, the list has a nearer one.
    const auto last_distance = [&] {
        u64 mine = 0;
#pragma unroll
        for (int c = 0; c < Chunks; ++c)
            if (c * kWarp + lane == length - 1) mine = entries[c];
        return ranked_distance(__shfl_sync(kAllLanes, mine, (length - 1) % kWarp));
    };
    float bound = last_distance();
    int accepted = 0, first_changed = kPlaces;

    // Of the row's entries the number that stand before; where one is equal but for its NEW bit, `known` is set.
    const auto place_of = [&](u64 candidate, bool& known) {
        const u64 key = candidate & ~u64(1);
        int place = 0;
#pragma unroll
        for (int step = kPlaces / 2; step > 0; step /= 2)
            if (row[place + step - 1] < key) place += step;
        const u64 there = row[place];
        known = (there & ~u64(1)) == key;
        return place + (there < key);
    };
    // The same pair may come again with another distance, where floats were summed in another order. By all lanes, each
    // with a candidate or kNothing.
    const auto drop_known_ids = [&](u64& candidate) {
        const bool suspect = candidate != kNothing && seen.add(u32(candidate) >> 1);
        for (u32 todo = __ballot_sync(kAllLanes, suspect); todo != 0; todo &= todo - 1) {
            const int from = __ffs(int(todo)) - 1;
            const u32 id = __shfl_sync(kAllLanes, u32(candidate), from) >> 1;
            bool known = same_id(candidate, id) && lane != from;
#pragma unroll
            for (int c = 0; c < Chunks; ++c) known |= same_id(entries[c], id);
            if (__any_sync(kAllLanes, known) && lane == from) candidate = kNothing;
        }
    };
    // Every lane brings a candidate or kNothing.
    const auto apply = [&](u64 candidate) {
        const u32 near = __ballot_sync(kAllLanes, candidate != kNothing);
        if (near == 0) return;
        if (candidate != kNothing) room[rank_in(near)] = candidate;
        __syncwarp();
        u64 sorted[1] = {lane < __popc(near) ? room[lane] : kNothing};
        sort_by_upper_half(sorted, room, __popc(near));
        bool known = false;
        const u64 before = __shfl_up_sync(kAllLanes, sorted[0], 1);
        const int rank = place_of(sorted[0], known);
        if (known || (lane > 0 && before == sorted[0])) sorted[0] = kNothing;
        drop_known_ids(sorted[0]);
        const u32 left = __ballot_sync(kAllLanes, sorted[0] != kNothing);
        const int place = rank + rank_in(left);
        const bool enters = sorted[0] != kNothing && place < length;
        const u32 entering = __ballot_sync(kAllLanes, enters);  // the first of those left
        if (entering == 0) return;
        accepted += __popc(entering);
        first_changed = min(first_changed, __shfl_sync(kAllLanes, place, __ffs(int(entering)) - 1));
        __syncwarp();
        if (enters) room[rank_in(entering)] = sorted[0];
        __syncwarp();
        int taken = 0;  // candidates in the chunks before
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
            const u32 here = __reduce_or_sync(kAllLanes, enters && place / kWarp == c ? 1u << place % kWarp : 0);
            const int nearer_ones = taken + rank_in(here), at = c * kWarp + lane;
            entries[c] = at < length ? row[here >> lane & 1 ? kPlaces + nearer_ones : at - nearer_ones] : kNothing;
            taken += __popc(here);
        }
        __syncwarp();
        bound = last_distance();
    };
    const auto if_near = [&](u64 candidate) {
        // As near as the last one: ids decide.
        const bool near = distance_of(candidate) <= bound && distance_of(candidate) < INFINITY;
        return near ? ranked(distance_of(candidate), id_of(candidate) | kNewBit) : kNothing;
    };
    __syncwarp();
    u64 found = if_near(first_candidate);
    for (int next = kWarp;;) {
        // Lanes that hold nothing take the next candidates, until all hold one or no more come.
        const u32 idle = __ballot_sync(kAllLanes, found == kNothing);
        if (next < count && idle != 0) {
            const int mine = next + rank_in(idle);
            if (found == kNothing && mine < count) found = if_near(queue[mine]);
            next += __popc(idle);
            continue;
        }
        apply(found);
        if (next >= count) break;
        found = kNothing;
#pragma unroll
        for (int c = 0; c < Chunks; ++c) row[c * kWarp + lane] = entries[c];
        __syncwarp();
    }
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        if (place >= first_changed && place < length) {
            list_ids[place] = ranked_id(entries[c]);
            list_distances[place] = ranked_distance(entries[c]);
        }
    }
    if (lane == 0) {
        candidates.counts[object] = 0;
        lists.bound(object) = bound;
        Counters& sum = counters[blockIdx.x % kSpread];
        atomicAdd(&sum.offered, u64(offered));
        atomicAdd(&sum.accepted, u64(accepted));
        if (offered > u32(candidates.capacity)) atomicAdd(&sum.lost, u64(offered - candidates.capacity));
    }
}

}  // namespace gnnd::cuda
