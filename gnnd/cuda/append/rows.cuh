// SPDX-License-Identifier: MIT
#pragma once
/// \file rows.cuh
/// The first and the last kernels of append() by searching: rows of the old graph, links back to objects that no row
/// leads to, the vectors of a batch, and rows that nothing was found for. A warp does the work of one object unless
/// they say otherwise.

#include "gnnd/cuda/append/insert.cuh"
#include "gnnd/cuda/device/columns.cuh"
#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/raw.cuh"

namespace gnnd::cuda {

/// Rows of the old graph into the new one, without what is no neighbour. Where they lie may be where they go.
__global__ void __launch_bounds__(kInsertWarps* kWarp) load_rows_kernel(Columns columns, Rows rows, BackLinks back) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp;
    if (object >= columns.n) return;
    const int last = min(rows.k, detail::kBranches) - 1;
    const int count = read_columns(columns, object, [&](int place, u32 id, float distance) {
        rows.ids[object * rows.k + place] = std::int32_t(id);
        rows.distances[object * rows.k + place] = distance;
        if (place == last && back.n != 0) back.reach[object] = rows.key_of(distance);
    });
    for (int j = count + lane_id(); j < rows.k; j += kWarp) {
        rows.ids[object * rows.k + j] = -1;
        rows.distances[object * rows.k + j] = rows.key_of(INFINITY);
    }
    if (count <= last && lane_id() == 0 && back.n != 0) back.reach[object] = INFINITY;
}

/// Links back from the first columns of the rows, to those whose rows do not lead there themselves. Of objects that
/// want the same place the largest number stays, so that chance decides nothing.
__global__ void __launch_bounds__(kInsertWarps* kWarp) link_back_kernel(Rows rows, BackLinks back) {
    constexpr int kRows = kWarp / detail::kLinkedColumns;  // of a warp
    const std::int64_t warp = std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp;
    const std::int64_t object = warp * kRows + lane_id() / detail::kLinkedColumns;
    const int j = lane_id() % detail::kLinkedColumns;
    if (object >= back.n || j >= rows.k) return;
    const std::int32_t id = rows.ids[object * rows.k + j];
    const float key = rows.key_of(rows.distances[object * rows.k + j]);
    if (id < 0 || key <= back.reach[id]) return;
    const u32 place = mix(u32(object)) % detail::kBackLinks;
    atomicMax(&back.ids[std::int64_t(id) * detail::kBackLinks + place], std::int32_t(object));
}

/// The objects of the batch and behind them the pivots, and their vectors, as one array.
/// \param objects  batch.count + pivots.count, written
/// \param vectors  as many x sets.d, written
template <class T>
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    gather_kernel(Sets sets, Batch batch, Pivots pivots, u32* objects, T* vectors) {
    const u32 i = blockIdx.x * kInsertWarps + threadIdx.x / kWarp;
    if (i >= batch.count + pivots.count) return;
    const u32 object = i < batch.count ? batch.first + i : pivots.object(i - batch.count);
    if (lane_id() == 0) objects[i] = object;
    const T* row = sets.row<T>(object);
    for (std::int64_t c = lane_id(); c < sets.d; c += kWarp) vectors[i * sets.d + c] = row[c];
}

/// Rare: rows that are short, since the old graph's were or searches found less, get random objects. A warp looks at 32
/// rows.
template <class T, class M>
__global__ void __launch_bounds__(kInsertWarps* kWarp)
    fill_kernel(Sets sets, Rows rows, std::int64_t n, int wanted, u32 seed) {
    SortedList list(reinterpret_cast<u64*>(memory_of_warp(SortedList::bytes(rows.k))), rows.k);
    const std::int64_t first = (std::int64_t(blockIdx.x) * kInsertWarps + threadIdx.x / kWarp) * kWarp;
    const std::int64_t mine = first + lane_id();
    u32 short_ones = __ballot_sync(kAllLanes, mine < n && rows.ids[mine * rows.k + wanted - 1] < 0);
    for (; short_ones != 0; short_ones &= short_ones - 1) {
        const std::int64_t object = first + __ffs(int(short_ones)) - 1;
        list.load(rows, object);
        for (u32 attempt = 1; list.size < wanted; ++attempt) {
            const u32 id = scaled(mix(seed ^ mix(u32(object)) ^ mix(attempt)), u32(n));
            // By the id alone: distances of the old graph may be rounded in another way than here.
            if (id == u32(object) || list.holds(id)) continue;
            const float distance = exact<T, M, kWarp>(sets.row<T>(u32(object)), sets.row<T>(id), sets.d);
            list.offer(lane_id() == 0 ? ranked(rows.key_of(distance), id) : kNothing);
            list.settle();
        }
        list.store(rows, object);
        __syncwarp();
    }
}

}  // namespace gnnd::cuda
