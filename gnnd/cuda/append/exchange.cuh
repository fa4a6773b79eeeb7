// SPDX-License-Identifier: MIT
#pragma once
/// \file exchange.cuh
/// Step 3 of append() by searching: objects that were found are offered those that found them.

#include "gnnd/cuda/append/insert.cuh"

namespace gnnd::cuda {

inline constexpr int kOfferThreads = 512;  ///< of a block
inline constexpr int kRowsToTakeIn = 8;    ///< of a warp

/// Counts what the batch offers to which rows. A thread an offer.
__global__ void __launch_bounds__(kOfferThreads) offer_kernel(Rows rows, Batch batch, InsertCounters* counters) {
    const u32 at = blockIdx.x * kOfferThreads + threadIdx.x, number = at / u32(batch.offers_each);
    const u64 entry = number < batch.count ? batch.met[at] : kNothing;
    u32 slot = kNoId;
    if (entry != kNothing) {
        const u32 id = ranked_id(entry) & ~kNewBit;
        const std::int64_t last = std::int64_t(id) * rows.k + rows.k - 1;
        const u32 last_id = rows.ids[last] < 0 ? kNoId : u32(rows.ids[last]);
        if (nearer(ranked_distance(entry), batch.first + number, rows.key_of(rows.distances[last]), last_id))
            slot = atomicAdd(&batch.counts[id], 1u);
    }
    if (number < batch.count) batch.offer_numbers[at] = slot;
    const int offered = __syncthreads_count(slot != kNoId);
    if (threadIdx.x == 0) atomicAdd(&counters->offered, u64(offered));
}

/// Writes the offers down, those to a row together.
__global__ void __launch_bounds__(kOfferThreads) scatter_offers_kernel(Batch batch) {
    const u32 at = blockIdx.x * kOfferThreads + threadIdx.x, number = at / u32(batch.offers_each);
    const u32 slot = number < batch.count ? batch.offer_numbers[at] : kNoId;
    if (slot == kNoId) return;
    const u64 entry = batch.met[at];
    batch.offers[batch.offsets[ranked_id(entry) & ~kNewBit] + slot] =
        ranked(ranked_distance(entry), batch.first + number);
}

/// The rows take in what is nearest of what they have and what they are offered, in whatever order. A warp looks at
/// kRowsToTakeIn rows.
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    take_in_kernel(Rows rows, Batch batch, InsertCounters* counters) {
    SortedList list(reinterpret_cast<u64*>(memory_of_warp(SortedList::bytes(rows.k))), rows.k);
    const u32 first_row = (blockIdx.x * kInsertWarps + threadIdx.x / kWarp) * kRowsToTakeIn;
    const u32 row = first_row + lane_id();
    const bool here = lane_id() < kRowsToTakeIn && row < batch.first + batch.count;
    u32 offered = __ballot_sync(kAllLanes, here && batch.counts[row] != 0);
    for (; offered != 0; offered &= offered - 1) {
        const u32 object = first_row + __ffs(int(offered)) - 1, count = batch.counts[object];
        const u64* offers = batch.offers + batch.offsets[object];
        list.load(rows, object);
        for (u32 first = 0; first < count; first += kWarp)
            list.offer(first + lane_id() < count ? offers[first + lane_id()] : kNothing);
        list.settle();
        list.store(rows, object);
    }
    if (lane_id() == 0 && list.entered != 0) atomicAdd(&counters->accepted, u64(list.entered));
}

}  // namespace gnnd::cuda
