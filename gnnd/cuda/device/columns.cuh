#pragma once
/// \file columns.cuh
/// Reading rows of a finished graph.

#include "gnnd/cuda/launch.h"

namespace gnnd::cuda {

/// Columns of a graph's row, in its order, without what is no neighbour. By a whole warp; returns how many there are.
template <class Take>
__device__ int read_columns(const Columns& columns, std::int64_t object, const Take& take) {
    const std::int64_t row = object - columns.first;
    int count = 0;
    for (std::int64_t first = columns.begin; first < columns.end; first += kWarp) {
        const std::int64_t j = first + lane_id();
        const u32 id = j < columns.end ? u32(columns.ids[row * columns.stride + j]) : kNoId;
        const bool real = id < u32(columns.n) && id != u32(row);
        const float distance = real ? columns.distances[row * columns.stride + j] : 0;
        const u32 all = __ballot_sync(kAllLanes, real);  // all have read: what is taken may go where they did
        if (real) take(count + rank_in(all), id + columns.first, distance);
        count += __popc(all);
    }
    return count;
}

}  // namespace gnnd::cuda
