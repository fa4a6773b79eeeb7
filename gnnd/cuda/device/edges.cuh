// SPDX-License-Identifier: MIT
#pragma once
/// \file edges.cuh
/// Edges to the arrays of their owners: they are counted, offsets are allocated, and they are scattered, in any order.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

inline constexpr int kOffsetThreads = 256;

/// A thread an owner; see allocate_offsets() of algorithm.h. offsets[owners] is 0 before.
__global__ void __launch_bounds__(kOffsetThreads)
    allocate_offsets_kernel(const u32* counts, u64* offsets, std::int64_t owners, const StopFlag* stop) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (stop != nullptr && stop->raised) return;
    const u32 count = i < owners ? counts[i] : 0;
    u64 before = count;
    for (int step = 1; step < kWarp; step *= 2) {
        const u64 lower = __shfl_up_sync(kAllLanes, before, step);
        if (lane_id() >= step) before += lower;
    }
    u64 begin = 0;
    if (lane_id() == kWarp - 1) begin = atomicAdd(&offsets[owners], before);
    begin = __shfl_sync(kAllLanes, begin, kWarp - 1);
    if (i < owners) offsets[i] = begin + before - count;
}

/// Adds an edge to its owner's; offsets[owner] moves on.
template <class Edge>
__device__ void scatter_edge(u64* offsets, Edge* edges, std::int64_t owner, Edge edge) {
    edges[atomicAdd(&offsets[owner], u64(1))] = edge;
}

/// An owner's edges once all are scattered.
template <class Edge>
struct EdgeRange {
    const Edge *begin, *end;
    __device__ EdgeRange(const u64* offsets, const u32* counts, const Edge* edges, std::int64_t owner)
        : begin(edges + offsets[owner] - counts[owner]), end(edges + offsets[owner]) {}
};

}  // namespace gnnd::cuda
