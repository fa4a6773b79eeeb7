// SPDX-License-Identifier: MIT
#pragma once
/// \file codes.h
/// Floats as int8: components, after the mean was taken off where the metric knows no origin, as multiples of one step,
/// so that products of codes are those of vectors but for rounding. The step is the one of kCodeScales, from 1/127 of
/// the largest component downwards, that leaves the least squared error in some rows; what is larger than 127 steps is
/// cut. Distances between codes are larger than those of the vectors by about twice a code's squared error, which
/// changes their order little as long as that is small beside them.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gnnd/cuda/space/space.h"

namespace gnnd::cuda {

struct Candidates;

inline constexpr int kCodeRows = 256, kCodeScales = 32;
/// Bytes that pack_codes() works in.
inline constexpr std::int64_t kCodeErrorBytes = std::int64_t(kCodeRows) * kCodeScales * 4;

/// The findings of prepare_space().
struct CodeSource {
    const float* mean;  ///< d means, and d means of squares
    SpaceInfo* info;    ///< its scale is 1 before; scale, unit and code_error are written
    bool normalized;    ///< rows are divided by their norms
    int degree;         ///< list distances grow by this power of the scale
};

/// \param rows    n x row_bytes, written, zeros behind the components
/// \param bias    n, written: squared norms of the codes
/// \param errors  n, written: what a row, times the scale, differs from its code by at most; the largest goes into
///                info. Null: nobody wants them
/// \param work    kCodeErrorBytes
void pack_codes(const RawVectors& vectors, const CodeSource& source, std::uint8_t* rows, int row_bytes,
                std::uint32_t* bias, float* errors, float* work, cudaStream_t stream);

/// Twice a code's squared error, times this, is the least distance between codes that says much of that of the vectors.
/// Chosen by measurement (benchs/NOTEBOOK.md).
inline constexpr float kCoarse = 16;

/// Counts in info->coarse the objects that have `take` candidates nearer than that. Inner products, negated, are less
/// than any such distance: all count.
void count_coarse(const Candidates& candidates, int take, std::int64_t n, SpaceInfo* info, cudaStream_t stream);

}  // namespace gnnd::cuda
