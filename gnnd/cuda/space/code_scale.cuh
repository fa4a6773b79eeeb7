// SPDX-License-Identifier: MIT
#pragma once
/// \file code_scale.cuh
/// The step of int8 codes: the one of kCodeScales that leaves the least squared error in some rows.

#include <cfloat>

#include "gnnd/cuda/device/row_scale.cuh"
#include "gnnd/cuda/space/codes.h"

namespace gnnd::cuda {

inline constexpr float kLargestCode = 127;  ///< of either sign
static_assert(kCodeScales == kWarp);

/// The scales that are tried: each is 2^(1/4) of the one before, the first cuts nothing.
/// \param degree  list distances grow by this power of the scale
__device__ inline float code_scale(float largest, int degree, int i) {
    return fminf(kLargestCode / fmaxf(largest, FLT_MIN) * exp2f(0.25f * float(i)), largest_scale(degree));
}

__device__ inline float code_of(float x) {
    return fminf(fmaxf(rintf(x), -kLargestCode), kLargestCode);
}

/// A scale, and what codes of it leave.
struct CodeStep {
    float scale, error;  ///< error: of a row, squared, on average, in the codes' units
};

/// True in the lane whose scale has the least error, of equal ones the first. By a warp, a lane a scale.
__device__ inline bool is_best_scale(float error) {
    error = isfinite(error) ? error : FLT_MAX;  // of rows that scan_kernel refuses
    float least = error;
    for (int step = kWarp / 2; step > 0; step /= 2) least = fminf(least, __shfl_xor_sync(kAllLanes, least, step));
    return lane_id() == __ffs(int(__ballot_sync(kAllLanes, error == least))) - 1;
}

/// Components that are too small for any scale become codes of few steps or of none, and their squared errors vanish in
/// float32: nothing is to be believed of these.
/// \param error   squared errors of kCodeRows rows, in the vectors' units
/// \param degree  list distances grow by this power of the scale
__device__ inline CodeStep step_of(float error, float scale, int degree) {
    const bool known = isfinite(error) && scale < largest_scale(degree);
    return {scale, known ? error / float(kCodeRows) * scale * scale : FLT_MAX};
}

/// Components are multiplied by the scale from now on.
/// \param degree   list distances grow by this power of it
/// \param longest  of projections, see SpaceInfo
__device__ inline void take_step(const CodeStep& step, int degree, SpaceInfo* info, float longest = 1) {
    const float before = info->scale;
    set_scale(info, step.scale, degree);
    info->scale *= before;
    info->code_error = step.error;
    info->longest = longest;
    info->largest_error = 0;
}

}  // namespace gnnd::cuda
