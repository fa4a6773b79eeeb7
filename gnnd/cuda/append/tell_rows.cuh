// SPDX-License-Identifier: MIT
#pragma once
/// \file tell_rows.cuh
/// What an append() has changed in the rows of a graph that is kept as it was before.

#include "gnnd/cuda/device/state.cuh"
#include "gnnd/detail/append_rows.h"

namespace gnnd::cuda {

inline constexpr int kRowWarps = 8;  ///< of a block

/// A graph of n objects in arrays that have room for more.
struct GraphArrays {
    std::int32_t* ids;  ///< n x k
    float* distances;   ///< n x k
};

/// A warp a row: whether it differs.
/// \param changed  n, 1 or 0 written
__global__ void __launch_bounds__(kRowWarps* kWarp)
    find_changed_kernel(GraphArrays before, GraphArrays after, std::int64_t n, std::int64_t k, std::uint8_t* changed) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
    if (object >= n) return;
    bool differs = false;
    for (std::int64_t j = object * k + lane_id(); j < (object + 1) * k; j += kWarp)
        differs |= before.ids[j] != after.ids[j] || before.distances[j] != after.distances[j];
    differs = __any_sync(kAllLanes, differs);
    if (lane_id() == 0) changed[object] = differs;
}

/// A warp a row: what is to be told of the objects' rows, as detail::tell_row() does it.
/// \param objects  count
/// \param added    objects from this one on were added
/// \param ends     count: written, how many entries each row has; read, where they end, once `entries` are given
__global__ void __launch_bounds__(kRowWarps* kWarp)
    tell_rows_kernel(GraphArrays before, GraphArrays after, std::int64_t k, const std::int32_t* objects,
                     std::int64_t count, std::int64_t added, std::int64_t* ends, detail::RowEntry* entries) {
    const std::int64_t row = std::int64_t(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
    if (row >= count) return;
    const std::int64_t at = std::int64_t(objects[row]) * k;
    std::int64_t fresh = 0;  // entries so far that are added objects
    bool differs = false;    // of the others, from what was there, in its order
    for (std::int64_t first = 0; first < k; first += kWarp) {
        const std::int64_t j = first + lane_id();
        const std::int32_t id = j < k ? after.ids[at + j] : -1;
        const u32 is_fresh = __ballot_sync(kAllLanes, id >= added);
        const std::int64_t from = at + j - fresh - rank_in(is_fresh);
        if (j < k && id < added) differs |= before.ids[from] != id || before.distances[from] != after.distances[at + j];
        fresh += __popc(is_fresh);
    }
    const bool whole = __any_sync(kAllLanes, differs);
    if (entries == nullptr) {
        if (lane_id() == 0) ends[row] = whole ? k : fresh;
        return;
    }
    detail::RowEntry* out = entries + (row == 0 ? 0 : ends[row - 1]);
    for (std::int64_t first = 0; first < k; first += kWarp) {
        const std::int64_t j = first + lane_id();
        const bool told = j < k && (whole || after.ids[at + j] >= added);
        const u32 are_told = __ballot_sync(kAllLanes, told);
        if (told) out[rank_in(are_told)] = {std::int32_t(j), after.ids[at + j], after.distances[at + j]};
        out += __popc(are_told);
    }
}

}  // namespace gnnd::cuda
