// SPDX-License-Identifier: MIT
#pragma once
/// \file reverse.cuh
/// Step 2's reverse samples for a deterministic build: the choice of p of the objects that took an object must not
/// depend on who came first. So all of them are written down, and of each object's those with the smallest hashes stay.
///
/// sample.cuh has counted them. Each object's get a place in one array (allocate_offsets), are put there in any order
/// (scatter), and are sorted by hash (choose).

#include <type_traits>

#include "gnnd/cuda/device/edges.cuh"
#include "gnnd/cuda/device/sort.cuh"
#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

inline constexpr int kReverseWarps = 8;

/// A warp an object: adds it to those that it took. Moves the offsets.
__global__ void __launch_bounds__(kReverseWarps* kWarp)
    scatter_kernel(Samples samples, std::int64_t n, const StopFlag* stop) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kReverseWarps + threadIdx.x / kWarp;
    if (object >= n || stop->raised) return;
    for (int kind = 0; kind < 2; ++kind) {
        const int own = samples.own[object] >> (16 * kind) & 0xffff;
        for (int j = lane_id(); j < own; j += kWarp) {
            const u32 id = samples.ids[(object * 2 + kind) * 2 * samples.p + j];
            scatter_edge(samples.offsets, samples.edges, 2 * std::int64_t(id) + kind, u32(object));
        }
    }
}

/// A warp an object and kind. p is at most 64: the nearest 64 so far and 64 others are sorted at a time.
__global__ void __launch_bounds__(kReverseWarps* kWarp)
    choose_kernel(Samples samples, u32 salt, std::int64_t n, const StopFlag* stop) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kReverseWarps + threadIdx.x / kWarp;
    if (i >= 2 * n || stop->raised) return;
    __shared__ u64 rooms[kReverseWarps][4 * kWarp];
    const u64 count = samples.reverse[i];
    const auto [begin, end] = EdgeRange<u32>(samples.offsets, samples.reverse, samples.edges, i);
    const u32* next = begin;
    const u32 own_salt = mix(u32(i / 2) ^ salt);
    u32* chosen = samples.ids + i * 2 * samples.p + samples.p;
    const auto read = [&](const u32* place) {
        if (place >= end) return kNothing;
        return u64(mix(*place ^ own_salt)) << 32 | *place;
    };
    u64* const room = rooms[threadIdx.x / kWarp];
    const auto keep = [&]<int C>(const u64(&entries)[C]) {
#pragma unroll
        for (int c = 0; c < C; ++c)
            if (const int at = c * kWarp + lane_id(); entries[c] != kNothing && at < samples.p)
                chosen[at] = u32(entries[c]);
    };
    const auto keep_all = [&]<int C>(std::integral_constant<int, C>) {
        u64 entries[C];
#pragma unroll
        for (int c = 0; c < C; ++c) entries[c] = read(next + c * kWarp + lane_id());
        sort_by_upper_half(entries, room, int(count));
        keep(entries);
    };
    if (count <= kWarp) return keep_all(std::integral_constant<int, 1>());
    if (count <= 2 * kWarp) return keep_all(std::integral_constant<int, 2>());
    u64 entries[4] = {kNothing, kNothing, kNothing, kNothing};
    for (; next < end; next += 2 * kWarp) {
        entries[2] = read(next + lane_id());
        entries[3] = read(next + kWarp + lane_id());
        __syncwarp();
        sort_by_upper_half(entries, room, 4 * kWarp);
    }
    keep(entries);
}

}  // namespace gnnd::cuda
