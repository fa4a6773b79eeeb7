// SPDX-License-Identifier: MIT
#pragma once
/// \file update.cuh
/// Step 4 of GNND: what a cross-match found reaches the lists. The cross-match is the same for all updates; they differ
/// in how many partners of a sample they ask it for (kKept) and in what they do with them:
///
///   BufferedUpdate  `auto`: the nearest two of each kind, to a buffer without locks; apply_candidates.cuh follows
///   CompleteUpdate  the same where the order of blocks must not count: what finds no room is inserted at once
///   LockUpdate      `selective`: the paper's, under spinlocks (variants/lock_update.cuh)
///   SortUpdate      `all`: every pair, the paper's GNND-r1 (variants/sort_update.cuh)
///
/// All but the first lead to the same lists whatever the order in which blocks run: the nearest of all that was
/// offered, ties by id. That needs a pair's distance in a list to be no larger than what a cross-match offers it with,
/// else a pair that was pushed out could come back nearer, or not be pushed out at all: deterministic builds lower the
/// distances that lists start from (InitNeighborsArgs::ordered).

#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// A candidate v for the list of u. The bound is that of u's list when the block started, which saves waiting for it
/// and loses nothing: bounds only fall. No offer: distance +inf.
struct Offer {
    u32 u, v;
    float distance, bound;
};

/// Lists under spinlocks, which all updates but the first share.
struct LockedLists {
    Lists lists;
    u32* locks;  ///< n x lists.segments, 0 while nobody holds them
    Counters* counters;

    __device__ void lock(std::int64_t i) const {
        if (lane_id() == 0) {
            while (atomicCAS(&locks[i], 0u, 1u) != 0) __nanosleep(32);
            __threadfence();
        }
        __syncwarp();
    }
    __device__ void unlock(std::int64_t i) const {
        __syncwarp();
        if (lane_id() == 0) {
            __threadfence();
            atomicExch(&locks[i], 0u);
        }
    }
    /// Of u, from behind its bound.
    __device__ u32 bias_of(u32 u) const { return __float_as_uint(lists.bounds[std::int64_t(u) * 2 + 1]); }
    /// By one lane of a warp.
    __device__ void count(u32 offered, u32 accepted) const {
        if (offered + accepted == 0) return;
        atomicAdd(&counters[blockIdx.x % kSpread].offered, u64(offered));
        atomicAdd(&counters[blockIdx.x % kSpread].accepted, u64(accepted));
    }

    /// Puts v into its segment of u's list if it is near enough and not there already. By a whole warp.
    __device__ bool enter(u32 u, u32 v, float distance) const {
        const int segment = lists.segment_of(v), size = lists.size_of(segment);
        u32* ids = lists.ids + std::int64_t(u) * lists.length;
        float* distances = lists.distances + std::int64_t(u) * lists.length;
        const std::int64_t mutex = std::int64_t(u) * lists.segments + segment;
        lock(mutex);
        u32 id = kNoId;
        float at = INFINITY;
        const auto read = [&](int rank) {
            if (rank >= size) return;
            id = __ldcg(&ids[lists.place(rank, segment)]);
            at = __ldcg(&distances[lists.place(rank, segment)]);
        };
        int rank = 0;
        bool known = false;
        for (int first = 0; first < size; first += kWarp) {
            const bool real = first + lane_id() < size;
            read(first + lane_id());
            known |= real && (id & ~kNewBit) == v;
            rank += __popc(__ballot_sync(kAllLanes, real && nearer(at, id & ~kNewBit, distance, v)));
        }
        const bool enters = !__any_sync(kAllLanes, known) && rank < size;
        if (enters) {
            // From the end on, so that nothing is overwritten before it was read.
            for (int first = (size - 1) / kWarp * kWarp; first >= 0 && first + kWarp > rank; first -= kWarp) {
                const int mine = first + lane_id();
                if (size > kWarp) read(mine);  // else the registers hold it
                __syncwarp();
                if (mine >= rank && mine + 1 < size) {
                    __stcg(&ids[lists.place(mine + 1, segment)], id);
                    __stcg(&distances[lists.place(mine + 1, segment)], at);
                }
                __syncwarp();
            }
            if (lane_id() == 0) {
                __stcg(&ids[lists.place(rank, segment)], v | kNewBit);
                __stcg(&distances[lists.place(rank, segment)], distance);
            }
        }
        unlock(mutex);
        return enters;
    }
};

struct BufferedUpdate {
    static constexpr int kKept = 2;  ///< with two, one iteration less reaches the same recall (measured, NOTEBOOK.md)
    static constexpr bool kOrderMatters = true;
    const float2* bounds;  ///< n: the lists' bounds, and the bits of the objects' biases
    Filter filter;
    Candidates candidates;

    /// \param bias  set
    __device__ float bound_of(u32 u, u32& bias) const {
        const float2 both = bounds[u];
        bias = __float_as_uint(both.y);
        return both.x;
    }

    /// By all threads of a block.
    template <int N>
    __device__ void take(const Offer (&offers)[N]) const {
        bool lost[N];
        buffer<true>(offers, lost);
    }

  protected:
    /// \param remember  later offers of the same candidate are dropped, and rarely others, by chance
    /// \param lost      set for offers that could enter and found no room
    template <bool remember, int N>
    __device__ void buffer(const Offer (&offers)[N], bool (&lost)[N]) const {
        const u32 capacity = u32(candidates.capacity);
        u32 seen[N], hash[N], place[N] = {};
        u32* word[N];
        bool enters[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            hash[i] = filter.hash_of(offers[i].v);
            word[i] = filter.find(offers[i].u, hash[i]);
            enters[i] = offers[i].distance < offers[i].bound;
            seen[i] = enters[i] ? __ldcg(word[i]) : 0;
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            enters[i] = enters[i] && !Filter::knows(seen[i], hash[i]);
            if (remember) Filter::remember_if(enters[i], word[i], hash[i]);
            count_if(enters[i], &candidates.counts[offers[i].u], place[i]);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            lost[i] = enters[i] && place[i] >= capacity;
            store_if(enters[i] && !lost[i], &candidates.entries[u64(offers[i].u) * capacity + place[i]],
                     pack(offers[i].distance, offers[i].v));
        }
    }
};

/// Bounds do not change until candidates are applied, and what the filter knows is fixed as well: what is offered does
/// not depend on the order.
struct CompleteUpdate : BufferedUpdate {
    static constexpr bool kOrderMatters = false;
    LockedLists locked;

    template <int N>
    __device__ void take(const Offer (&offers)[N]) const {
        bool lost[N];
        buffer<false>(offers, lost);
        u32 accepted = 0;
#pragma unroll
        for (int i = 0; i < N; ++i)
            for (u32 todo = __ballot_sync(kAllLanes, lost[i]); todo != 0; todo &= todo - 1) {
                const int from = __ffs(todo) - 1;
                accepted +=
                    locked.enter(__shfl_sync(kAllLanes, offers[i].u, from), __shfl_sync(kAllLanes, offers[i].v, from),
                                 __shfl_sync(kAllLanes, offers[i].distance, from));
            }
        if (lane_id() == 0) locked.count(0, accepted);  // what was offered is counted when candidates are applied
    }
};

}  // namespace gnnd::cuda
