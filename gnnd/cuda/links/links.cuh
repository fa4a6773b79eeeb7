// SPDX-License-Identifier: MIT
#pragma once
/// \file links.cuh
/// Steps 2 and 3 of search_links(): links in the other direction, and what fills the room that is left. As in
/// reverse.cuh all objects that chose an object are written down in any order; sorting them by rank makes the order
/// one.

#include "gnnd/cuda/device/edges.cuh"
#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

inline constexpr int kLinkWarps = 8;

/// A warp an object: adds it, with the rank of the link above its number, to the edges of those that it chose. Moves
/// the offsets.
/// \param offsets  n: of each object where its edges go on
/// \param edges    one for each link, written
__global__ void __launch_bounds__(kLinkWarps* kWarp)
    scatter_links_kernel(Links links, u64* offsets, u64* edges, std::int64_t n) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kLinkWarps + threadIdx.x / kWarp;
    if (object >= n) return;
    const int size = int(links.sizes[object]);
    for (int j = lane_id(); j < size; j += kWarp) {
        const std::int32_t id = links.ids[object * links.degree + j];
        scatter_edge(offsets, edges, id, u64(j) << 32 | u64(object));
    }
}

/// A warp an object: completes its row. Chunks: 32 links each, for the degree.
/// \param offsets  n: of each object the end of its edges
/// \param edges    those of scatter_links_kernel()
/// \param graph    n x k ids
template <int Chunks>
__global__ void __launch_bounds__(kLinkWarps* kWarp)
    complete_kernel(Links links, const u64* offsets, const u64* edges, const std::int32_t* graph, std::int64_t k,
                    std::int64_t n) {
    __shared__ u32 rows[kLinkWarps][Chunks * kWarp];
    const std::int64_t object = std::int64_t(blockIdx.x) * kLinkWarps + threadIdx.x / kWarp;
    if (object >= n) return;
    u32* row = rows[threadIdx.x / kWarp];
    std::int32_t* out = links.ids + object * links.degree;
    const int chosen = int(links.sizes[object]), degree = links.degree;
    for (int j = lane_id(); j < chosen; j += kWarp) row[j] = u32(out[j]);
    __syncwarp();
    int size = chosen;
    const auto has = [&](u32 id) {
        bool found = false;
        for (int j = 0; j < size; ++j) found |= row[j] == id;
        return found;
    };

    u64 best[Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) best[c] = kNothing;
    const auto [begin, end] = EdgeRange<u64>(offsets, links.counts, edges, object);
    const u64* next = begin;
    for (; next < end && chosen < degree; next += Chunks * kWarp) {
        u64 others[Chunks];
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
            const u64* place = next + c * kWarp + lane_id();
            const u64 edge = place < end ? *place : kNothing;
            others[c] = edge != kNothing && has(u32(edge)) ? kNothing : edge;
        }
        sort_warp(others, int(min(std::int64_t(Chunks * kWarp), std::int64_t(end - next))));
        keep_least(best, others);
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int at = chosen + c * kWarp + lane_id();
        if (best[c] != kNothing && at < degree) row[at] = u32(best[c]);
        size += __popc(__ballot_sync(kAllLanes, best[c] != kNothing));
    }
    size = min(size, degree);
    __syncwarp();

    for (std::int64_t from = 0; from < k && size < degree; from += kWarp) {
        const u32 id = from + lane_id() < k ? u32(graph[object * k + from + lane_id()]) : kNoId;
        const bool repeated = rank_in(__match_any_sync(kAllLanes, id)) != 0;
        const bool fresh = id < u32(n) && id != u32(object) && !repeated && !has(id);
        const u32 added = __ballot_sync(kAllLanes, fresh);
        const int at = size + rank_in(added);
        __syncwarp();
        if (fresh && at < degree) row[at] = id;
        size = min(size + __popc(added), degree);
        __syncwarp();
    }
    for (int j = lane_id(); j < degree; j += kWarp) out[j] = j < size ? std::int32_t(row[j]) : -1;
}

}  // namespace gnnd::cuda
