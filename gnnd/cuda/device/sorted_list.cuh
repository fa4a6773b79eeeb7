// SPDX-License-Identifier: MIT
#pragma once
/// \file sorted_list.cuh
/// A row of a graph while it changes.

#include "gnnd/cuda/device/sort.cuh"

namespace gnnd::cuda {

inline constexpr int kMostWaiting = 64;  ///< entries that wait to join a sorted list

/// The graph that is being made.
struct Rows {
    std::int32_t* ids;  ///< n x k, -1 from where nothing is known yet
    float* distances;   ///< n x k
    int k;
    bool similarity;

    /// The number that orders entries, and the distance from it. Neither is a negative zero, which a graph may bring.
    __device__ float key_of(float distance) const { return similarity ? 0 - distance : distance + 0; }
};

/// The nearest entries in shared memory, sorted, none twice where an id always comes with the same distance; low bits
/// mark those that are NEW. What is offered waits until it is settled, so that few sorts serve many.
struct SortedList {
    u64 *entries, *spare;  ///< `length` each
    u64* found;            ///< kMostWaiting that wait, in no order
    u64 limit = kNothing;  ///< only what is before may enter
    int size = 0, length, waiting = 0;
    u32 entered = 0;

    static __host__ __device__ int bytes(int length) { return (2 * length + kMostWaiting) * int(sizeof(u64)); }
    __device__ SortedList(u64* memory, int length)
        : entries(memory), spare(memory + length), found(memory + 2 * length), length(length) {}

    /// Every lane offers an entry; kNothing for none.
    __device__ void offer(u64 entry) {
        const bool good = entry < limit;
        const u32 all = __ballot_sync(kAllLanes, good);
        if (waiting + __popc(all) > kMostWaiting) settle();
        if (good) found[waiting + rank_in(all)] = entry;
        waiting += __popc(all);
    }
    /// Puts the entries that wait into the list.
    __device__ void settle() {
        __syncwarp();
        if (waiting > kWarp)
            settle_runs<2>();
        else if (waiting > 0)
            settle_runs<1>();
        waiting = 0;
    }
    /// True for all lanes where an entry that was settled has this id, whatever its distance.
    __device__ bool holds(u32 id) const {
        bool mine = false;
        for (int i = lane_id(); i < size; i += kWarp) mine |= (ranked_id(entries[i]) & ~kNewBit) == id;
        return __any_sync(kAllLanes, mine);
    }
    /// Reads a row of the graph.
    __device__ void load(const Rows& rows, std::int64_t object) {
        size = 0;
        __syncwarp();
        for (int first = 0; first < rows.k; first += kWarp) {
            const int j = first + lane_id();
            const std::int32_t id = j < rows.k ? rows.ids[object * rows.k + j] : -1;
            if (id >= 0) entries[j] = ranked(rows.key_of(rows.distances[object * rows.k + j]), u32(id));
            size += __popc(__ballot_sync(kAllLanes, id >= 0));
        }
        __syncwarp();
        limit = size == length ? entries[length - 1] : kNothing;
    }
    /// Writes its first entries as a row.
    __device__ void store(const Rows& rows, std::int64_t object) const {
        for (int j = lane_id(); j < rows.k; j += kWarp) {
            const bool real = j < size;
            rows.ids[object * rows.k + j] = real ? std::int32_t(ranked_id(entries[j]) & ~kNewBit) : -1;
            rows.distances[object * rows.k + j] = rows.key_of(real ? ranked_distance(entries[j]) : INFINITY);
        }
    }

  private:
    /// The place of the first entry that is not before this one.
    __device__ static int place_of(const u64* sorted, int count, u64 entry) {
        int low = 0, high = count;
        while (low < high) {
            const int middle = (low + high) / 2;
            if ((sorted[middle] & ~u64(1)) < (entry & ~u64(1)))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
    /// Of at most 32 * Runs that wait.
    template <int Runs>
    __device__ void settle_runs() {
        u64 fresh[Runs];
#pragma unroll
        for (int c = 0; c < Runs; ++c) {
            const int i = c * kWarp + lane_id();
            fresh[c] = i < waiting ? found[i] : kNothing;
        }
        sort_warp(fresh, waiting);
        __syncwarp();
        int added = 0;
        u64 last = kNothing;  // of the run before
#pragma unroll
        for (int c = 0; c < Runs; ++c) {
            const int place = place_of(entries, size, fresh[c]);
            u64 before = __shfl_up_sync(kAllLanes, fresh[c], 1);
            if (lane_id() == 0) before = last;
            last = __shfl_sync(kAllLanes, fresh[c], kWarp - 1);
            const bool unknown = fresh[c] != kNothing && fresh[c] != before &&
                                 (place == size || (entries[place] & ~u64(1)) != (fresh[c] & ~u64(1)));
            const u32 all = __ballot_sync(kAllLanes, unknown);
            if (unknown) {
                const int rank = added + rank_in(all);
                found[rank] = fresh[c];
                if (place + rank < length) spare[place + rank] = fresh[c];
            }
            added += __popc(all);
        }
        __syncwarp();
        for (int i = lane_id(); i < size; i += kWarp) {
            const int to = i + place_of(found, added, entries[i]);
            if (to < length) spare[to] = entries[i];
        }
        __syncwarp();
        u64* const swapped = entries;
        entries = spare;
        spare = swapped;
        size = min(length, size + added);
        limit = size == length ? entries[length - 1] : kNothing;
        entered += u32(added);
    }
};

}  // namespace gnnd::cuda
