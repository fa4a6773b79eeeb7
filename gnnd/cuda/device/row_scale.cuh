// SPDX-License-Identifier: MIT
#pragma once
/// \file row_scale.cuh
/// From a row as it came to the numbers that are packed.

#include <cfloat>

#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/space/space.h"

namespace gnnd::cuda {

/// A row's components as they are packed are (its own times of_row) - (the mean's times of_mean).
struct RowScale {
    float of_row, of_mean;
};

/// By a warp.
template <class T>
__device__ RowScale scale_of_row(const T* row, std::int64_t d, bool normalized, const SpaceInfo* info) {
    RowScale scale{1, 1};
    if (normalized) {
        float sum = 0;
        for (std::int64_t c = lane_id(); c < d; c += kWarp) sum += float(row[c]) * float(row[c]);
        scale = {rsqrtf(fmaxf(warp_sum(sum), FLT_MIN)), rsqrtf(fmaxf(info->mean_square, FLT_MIN))};
    }
    return {scale.of_row * info->scale, scale.of_mean * info->scale};
}

}  // namespace gnnd::cuda
