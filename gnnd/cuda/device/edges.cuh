// SPDX-License-Identifier: MIT
#pragma once
/// \file edges.cuh
/// Edges to the arrays of their owners: they are counted, offsets are allocated, and they are scattered, in any order.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

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
