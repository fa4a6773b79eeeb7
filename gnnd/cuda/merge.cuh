#pragma once
/// \file merge.cuh
/// Merges buffered candidates into the lists, a warp an object: drops what the list has already, finds the rank of the
/// rest, and writes list and candidates to their new places.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// Chunks: the lists have at most 32 * Chunks entries. Room: shared memory for kMergeWarps lists.
inline constexpr int kMergeWarps = 8;

template <int Chunks>
__global__ void __launch_bounds__(kMergeWarps* kWarp)
    merge_kernel(Lists lists, Candidates candidates, std::int64_t n, const Control* control, Counters* counters) {
    extern __shared__ u64 merged_lists[];  // kMergeWarps x length
    const std::int64_t object = std::int64_t(blockIdx.x) * kMergeWarps + threadIdx.x / kWarp;
    if (object >= n || control->stopped) return;
    const u32 offered = candidates.counts[object];
    if (offered == 0) return;
    const int count = min(int(offered), candidates.capacity), length = lists.length, lane = lane_id();
    u64* merged = merged_lists + threadIdx.x / kWarp * length;
    const u64* queue = candidates.entries + object * candidates.capacity;
    u32* list_ids = lists.ids + object * length;
    float* list_distances = lists.distances + object * length;

    u32 ids[Chunks];
    float distances[Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        ids[c] = place < length ? list_ids[place] : kNoId;
        distances[c] = place < length ? list_distances[place] : INFINITY;
    }
    float bound = lists.bounds[object];
    int accepted = 0;
    for (int first = 0; first < count; first += kWarp) {
        const u64 mine = first + lane < count ? queue[first + lane] : pack(INFINITY, kNoId);
        const u32 my_id = id_of(mine);
        const float my_distance = distance_of(mine);
        bool keep = my_distance < bound;
        u32 todo = __ballot_sync(kAllLanes, keep);
        int moved[Chunks] = {}, rank = 0;
        int entering = 0;
        while (todo != 0) {
            const int from = __ffs(todo) - 1;
            todo &= todo - 1;
            const u32 id = __shfl_sync(kAllLanes, my_id, from);
            const float distance = __shfl_sync(kAllLanes, my_distance, from);
            bool same = false;
            u32 before = 0;
#pragma unroll
            for (int c = 0; c < Chunks; ++c) same |= (ids[c] & ~kNewBit) == id;
            if (__any_sync(kAllLanes, same)) {
                if (lane == from) keep = false;
                continue;
            }
#pragma unroll
            for (int c = 0; c < Chunks; ++c) {
                const bool after = nearer(distance, id, distances[c], ids[c] & ~kNewBit);
                moved[c] += after;
                before += __popc(__ballot_sync(kAllLanes, !after));
            }
            // Copies of the same candidate: the first stays.
            const bool copy = keep && lane > from && my_id == id;
            todo &= ~__ballot_sync(kAllLanes, copy);
            if (copy) keep = false;
            if (lane == from)
                rank += int(before);
            else
                rank += nearer(distance, id, my_distance, my_id);
            ++entering;
        }
        if (entering == 0) continue;
            // Lanes that were dropped before they were reached did count the ones that stay; only `keep` lanes matter.
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
            const int place = c * kWarp + lane;
            if (place < length && place + moved[c] < length) merged[place + moved[c]] = pack(distances[c], ids[c]);
        }
        const bool enters = keep && rank < length;
        if (enters) merged[rank] = pack(my_distance, my_id | kNewBit);
        accepted += __popc(__ballot_sync(kAllLanes, enters));
        __syncwarp();
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
            const int place = c * kWarp + lane;
            const u64 entry = place < length ? merged[place] : pack(INFINITY, kNoId);
            ids[c] = id_of(entry);
            distances[c] = distance_of(entry);
        }
        bound = distance_of(merged[length - 1]);
        __syncwarp();
    }
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int place = c * kWarp + lane;
        if (accepted != 0 && place < length) {
            list_ids[place] = ids[c];
            list_distances[place] = distances[c];
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
