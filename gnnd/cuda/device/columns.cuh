// SPDX-License-Identifier: MIT
#pragma once
/// \file columns.cuh
/// Reading rows of a finished graph.

#include "gnnd/cuda/algorithm.h"

namespace gnnd::cuda {

/// Columns of a graph's row, in its order, without what is no neighbour. By a whole warp; returns how many there are.
template <class Take>
__device__ int read_columns(const Columns& columns, std::int64_t object, const Take& take) {
    const std::int64_t row = object - columns.first;
    int count = 0;
    constexpr int kRuns = 2;  // loads that hide each other
    for (std::int64_t first = columns.begin; first < columns.end; first += kRuns * kWarp) {
        u32 ids[kRuns];
        float distances[kRuns];
#pragma unroll
        for (int c = 0; c < kRuns; ++c) {
            const std::int64_t j = first + c * kWarp + lane_id();
            ids[c] = j < columns.end ? u32(columns.ids[row * columns.stride + j]) : kNoId;
            distances[c] = j < columns.end ? columns.distances[row * columns.stride + j] : 0;
        }
#pragma unroll
        for (int c = 0; c < kRuns; ++c) {
            const bool real = ids[c] < u32(columns.n) && ids[c] != u32(row);
            const u32 all = __ballot_sync(kAllLanes, real);  // all have read: what is taken may go where they did
            if (real) take(count + rank_in(all), ids[c] + columns.first, distances[c]);
            count += __popc(all);
        }
    }
    return count;
}

}  // namespace gnnd::cuda
