#pragma once
/// \file update.cuh
/// Step 4 of GNND, how what a cross-match found reaches the lists. The cross-match is the same for all; it calls
/// `offer(valid, u, v, distance, bound_of(u))` with all lanes of a warp, each with a candidate v for the list of u or
/// none. The bound was read when the block started, which saves waiting for it and loses nothing: it only falls.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// Candidates that could enter are appended to a buffer of their object's, without locks, and merged after the
/// cross-match (merge.cuh).
struct AppendUpdate {
    using Bound = float;
    const float* bounds;
    Filter filter;
    Candidates candidates;

    __device__ Bound bound_of(u32 u) const { return bounds[u]; }

    __device__ void offer(bool valid, u32 u, u32 v, float distance, float bound) const {
        if (!valid || distance >= bound || !filter.pass(u, v)) return;
        const u32 place = atomicAdd(&candidates.counts[u], 1u);
        if (place < u32(candidates.capacity))
            candidates.entries[std::int64_t(u) * candidates.capacity + place] = pack(distance, v);
    }
};

}  // namespace gnnd::cuda
