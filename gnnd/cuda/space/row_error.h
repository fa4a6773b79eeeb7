// SPDX-License-Identifier: MIT
#pragma once
/// \file row_error.h
/// What packing takes off a row, and tensor cores off products of rows: constants of the bounds that sweep/bounds.h
/// proves.

#include <cmath>
#include <cstdint>

#include "gnnd/cuda/space/packed_type.h"
#include "gnnd/metric.h"

namespace gnnd::cuda {

/// Error of a row that was divided by its norm, as a part of the scale.
inline constexpr float kNormalizing = 0x1p-20f;

/// Of rows of d components as float16.
struct HalfError {
    float steps;      ///< of the tensor cores
    float rounding;   ///< error of a row, of its norm
    float subnormal;  ///< and of numbers that are subnormal

    explicit HalfError(std::int64_t d)
        : steps(float((2 * d + kStep - 1) / kStep + 1)),
          rounding(0x1.01p-11f),
          subnormal(std::sqrt(float(d)) * 0x1p-24f) {}
    /// What all steps cut of a product at most, as a part of both norms.
    GNND_HOST_DEVICE float summing() const { return steps * 0x1p-20f; }
};

}  // namespace gnnd::cuda
