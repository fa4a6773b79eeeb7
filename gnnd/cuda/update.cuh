#pragma once
/// \file update.cuh
/// Step 4 of GNND, how what a cross-match found reaches the lists. The cross-match is the same for all; each of its
/// threads calls `take` with what it offers.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// A candidate v for the list of u. The bound is that of u's list when the block started, which saves waiting for it
/// and loses nothing: bounds only fall. No offer: distance +inf.
struct Offer {
    u32 u, v;
    float distance, bound;
};

/// Candidates that could enter are appended to a buffer of their object's, without locks, and merged after the
/// cross-match (merge.cuh).
struct AppendUpdate {
    using Bound = float;
    const float* bounds;
    Filter filter;
    Candidates candidates;

    __device__ Bound bound_of(u32 u) const { return bounds[u]; }

    template <int N>
    __device__ void take(const Offer (&offers)[N]) const {
        u32 seen[N], place[N];
        bool enters[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            enters[i] = offers[i].distance < offers[i].bound;
            if (enters[i]) seen[i] = filter.read(offers[i].u, offers[i].v);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            enters[i] = enters[i] && !filter.knows(seen[i], offers[i].v);
            if (enters[i]) {
                filter.remember(offers[i].u, offers[i].v);
                place[i] = atomicAdd(&candidates.counts[offers[i].u], 1u);
            }
        }
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (enters[i] && place[i] < u32(candidates.capacity))
                candidates.entries[std::int64_t(offers[i].u) * candidates.capacity + place[i]] =
                    pack(offers[i].distance, offers[i].v);
    }
};

}  // namespace gnnd::cuda
