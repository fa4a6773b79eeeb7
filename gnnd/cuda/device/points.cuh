// SPDX-License-Identifier: MIT
#pragma once
/// \file points.cuh
/// The vectors as the kernels see them: rows of small cells, and what turns a product of two rows into a distance.

#include <cstdint>

#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/space/packed_type.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// Inside a build smaller is always nearer: the distance of the pair (a, b) is bias(a) + bias(b) + scale * product(a,
/// b). For l2 the biases are the squared norms and the scale is -2; for similarities they are 0 and -1; metrics without
/// a product have 0 and 1, and what accumulates is the distance itself.
struct Points {
    const std::uint8_t* rows;  ///< n x row_bytes
    std::int64_t n;
    int row_bytes;    ///< a multiple of kStep, zeros behind the components
    const u32* bias;  ///< n bit patterns of int (integer cells on tensor cores) or float; null for zeros
    int scale;
    int shift;            ///< integer keys are shifted left so far, see Key
    detail::Pairs pairs;  ///< which of them are compared

    __device__ const std::uint8_t* row(u32 id) const { return rows + std::int64_t(id) * row_bytes; }
};

}  // namespace gnnd::cuda
