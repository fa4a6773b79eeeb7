// SPDX-License-Identifier: MIT
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/sweep/chosen_rows.h"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

/// A warp a row.
/// \param objects  count
/// \param ids      n x stride, of which `width` are looked at
__global__ void lists_as_hits_kernel(const u32* objects, u32 count, const u32* ids, int stride, int width,
                                     Wanted wanted, int k, Candidates hits) {
    constexpr int kTimes = 4;  // as many as are wanted
    const u32 i = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (i >= count) return;
    const u32 object = objects[i];
    u64* to = hits.entries + std::int64_t(i) * hits.capacity;
    int present = 0;
    const auto take = [&](u32 owner) {
        const u32* list = ids + std::int64_t(owner) * stride;
        for (int first = 0; first < width; first += kWarp) {
            const u32 id = first + lane_id() < width ? list[first + lane_id()] & ~kNewBit : kNoId;
            const bool real = id != kNoId && id != object;
            const u32 used = __ballot_sync(kAllLanes, real);
            if (real) to[present + rank_in(used)] = id;
            present += __popc(used);
        }
        __syncwarp();
    };
    take(object);
    const int own = present, enough = kTimes * (i < wanted.whole ? k : wanted.at);
    for (int j = 0; j < own && present < enough && present + width <= hits.capacity; ++j) take(u32(to[j]));
    if (lane_id() == 0) hits.counts[i] = u32(present);
}

/// A warp a row: the rows of the objects, without gaps.
/// \param objects  count
/// \param to       count x row_bytes / 16, written
__global__ void gather_rows_kernel(SweptRows from, const u32* objects, u32 count, uint4* to) {
    const u32 pieces = u32(from.row_bytes / 16), i = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (i >= count) return;
    const auto* row = reinterpret_cast<const uint4*>(from.rows + std::int64_t(objects[i]) * from.row_bytes);
    for (u32 j = lane_id(); j < pieces; j += kWarp) to[u64(i) * pieces + j] = row[j];
}

/// A warp a list: from those places to these, null: to the first ones, and from these.
/// \param from_places, to_places  count
__global__ void copy_lists_kernel(Lists from, const u32* from_places, u32 count, Lists to, const u32* to_places) {
    const u32 i = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (i >= count) return;
    const u32 here = from_places != nullptr ? from_places[i] : i, there = to_places != nullptr ? to_places[i] : i;
    for (int j = lane_id(); j < to.length; j += kWarp) {
        to.ids[std::int64_t(there) * to.length + j] = from.ids[std::int64_t(here) * to.length + j];
        to.distances[std::int64_t(there) * to.length + j] = from.distances[std::int64_t(here) * to.length + j];
    }
    if (lane_id() == 0) to.bounds[there] = from.bounds[here];
}

}  // namespace

void lists_as_hits(const u32* objects, u32 count, const u32* ids, int stride, int width, Wanted wanted, int k,
                   const Candidates& hits, cudaStream_t stream) {
    lists_as_hits_kernel<<<blocks_for(count, kWarps), kThreads, 0, stream>>>(objects, count, ids, stride, width, wanted,
                                                                             k, hits);
    GNND_LAUNCHED("lists_as_hits_kernel");
}

void gather_rows(const SweptRows& from, const u32* objects, u32 count, std::uint8_t* to, cudaStream_t stream) {
    gather_rows_kernel<<<blocks_for(count, kWarps), kThreads, 0, stream>>>(from, objects, count,
                                                                           reinterpret_cast<uint4*>(to));
    GNND_LAUNCHED("gather_rows_kernel");
}

void take_lists(const Lists& all, const u32* places, u32 count, const Lists& chosen, cudaStream_t stream) {
    copy_lists_kernel<<<blocks_for(count, kWarps), kThreads, 0, stream>>>(all, places, count, chosen, nullptr);
    GNND_LAUNCHED("copy_lists_kernel");
}

void put_back(const Lists& chosen, const u32* places, u32 count, const Lists& all, cudaStream_t stream) {
    copy_lists_kernel<<<blocks_for(count, kWarps), kThreads, 0, stream>>>(chosen, nullptr, count, all, places);
    GNND_LAUNCHED("copy_lists_kernel");
}

}  // namespace gnnd::cuda
