// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep_launch.h
/// Starting the kernels of a sweep.

#include "gnnd/cuda/space/packed_type.h"
#include "gnnd/cuda/space/space.h"
#include "gnnd/cuda/sweep/sweep_args.h"
#include "gnnd/metric.h"

namespace gnnd::cuda {

/// Packed rows, as they lie in memory.
struct SweptRows {
    const std::uint8_t* rows;  ///< count x row_bytes
    std::int64_t count;
    int row_bytes;
};

/// Pairs or chosen rows on tensor cores, by product; of pairs rows and columns are the same.
void sweep_packed(PackedType, Compared, const SweepArgs&, const SweptRows& rows, const SweptRows& columns,
                  cudaStream_t);
/// All rows with a sample, likewise.
/// \param most  groups of columns, of which there is room for as many maxima
/// \return groups that there are
u32 sweep_sample(PackedType, const SweepArgs&, const SweptRows& rows, const SweptRows& columns, u32 most, cudaStream_t);
/// In float32, by the metric: pairs, or chosen rows, where there are row_ids. \param factors  n: 1 / norm, of
/// normalised metrics; null otherwise
void sweep_floats(Metric, const SweepArgs&, const RawVectors&, const float* factors, cudaStream_t);

}  // namespace gnnd::cuda
