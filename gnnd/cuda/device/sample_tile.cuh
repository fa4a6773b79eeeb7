// SPDX-License-Identifier: MIT
#pragma once
/// \file sample_tile.cuh
/// The samples that a block compares, each once.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// The distinct samples of the block's object, NEW ones from place 0 on and OLD ones from place T on; an id that is
/// both counts as NEW.
/// \tparam Kinds  1: OLD ones are left out. There are 2T threads all the same
template <int T, int Kinds>
struct SampleTile {
    static constexpr int kPlaces = Kinds * T;
    u32 ids[kPlaces];
    u32 table[2 * kPlaces];        ///< hash table over the ids
    int in_warp[kPlaces / kWarp];  ///< how many each warp brings
    int new_count, old_count;

    /// AnyOrder: where the own list and the reverse samples bring the same id, either place may be its place.
    /// \return false where there is nothing to do any more
    template <bool AnyOrder>
    __device__ bool gather(const Samples& samples, std::int64_t object, const StopFlag* stop) {
        const int kind = threadIdx.x / T, place = threadIdx.x % T;  // T is a multiple of the warp
        // All loads before the first use: they wait for memory together.
        const u32 which = u32(object) * 2 + kind, places = 2 * u32(samples.p);
        u32 id = kind < Kinds && place < int(places) ? samples.ids[u64(which) * places + place] : kNoId;
        const int own = samples.own[object] >> (16 * kind) & 0xffff;
        const int reverse = min(int(samples.reverse[which]), samples.p);
        if (stop->raised) return false;
        for (int i = threadIdx.x; i < 2 * kPlaces; i += 2 * T) table[i] = kNoId;
        if (place - (place < samples.p ? 0 : samples.p) >= (place < samples.p ? own : reverse)) id = kNoId;
        // Samples of one kind, taken by the object or reverse ones, are distinct among themselves: they share a turn.
        constexpr int kTurns = AnyOrder ? Kinds : 2 * Kinds;
        const int turn = AnyOrder ? kind : 2 * kind + (place >= samples.p);
        bool first = false;
#pragma unroll
        for (int now = 0; now < kTurns; ++now) {
            __syncthreads();
            if (turn == now) first = is_first(id);
        }
        const u32 ballot = __ballot_sync(kAllLanes, first);
        if (lane_id() == 0 && threadIdx.x < kPlaces) in_warp[threadIdx.x / kWarp] = __popc(ballot);
        __syncthreads();
        int before = 0, all[2] = {0, 0};
        for (int warp = 0; warp < kPlaces / kWarp; ++warp) {
            const int of = warp * kWarp / T;
            if (of == kind && warp < int(threadIdx.x / kWarp)) before += in_warp[warp];
            all[of] += in_warp[warp];
        }
        if (first) ids[kind * T + before + rank_in(ballot)] = id;
        new_count = all[0];  // all threads write the same
        old_count = all[1];
        __syncthreads();
        return true;
    }

  private:
    /// True for the first thread that brings this id.
    __device__ bool is_first(u32 id) {
        if (id == kNoId) return false;
        for (u32 slot = id * 0x9e3779b1u / (0x80000000u / kPlaces);; ++slot) {  // the upper bits are well mixed
            const u32 found = atomicCAS(&table[slot % (2 * kPlaces)], kNoId, id);
            if (found == kNoId) return true;
            if (found == id) return false;
        }
    }
};

}  // namespace gnnd::cuda
