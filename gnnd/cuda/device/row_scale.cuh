// SPDX-License-Identifier: MIT
#pragma once
/// \file row_scale.cuh
/// From a row as it came to the numbers that are packed, and from list distances to the metric's values.

#include <cfloat>

#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/space/space.h"

namespace gnnd::cuda {

/// The largest scale of components: with this power of it distances and `unit` are finite and have all their digits.
/// Components that are too small for it have squares below those that float32 holds.
__device__ inline float largest_scale(int degree) {
    return exp2f(float(126 / max(degree, 1)));
}

/// Notes the scale, and that list distances grow by this power of it.
__device__ inline void set_scale(SpaceInfo* info, float scale, int degree) {
    info->scale = scale;
    for (int power = 0; power < degree; ++power) info->unit /= scale;
}

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
