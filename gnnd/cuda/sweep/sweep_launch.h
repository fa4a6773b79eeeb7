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

/// On tensor cores, by product. args.row_ids null: all pairs of the columns, which are the rows too.
void sweep_packed(PackedType, const SweepArgs&, const SweptRows& rows, const SweptRows& columns, cudaStream_t);
/// In float32, by the metric. \param factors  n: 1 / norm, of normalised metrics; null otherwise
void sweep_floats(Metric, const SweepArgs&, const RawVectors&, const float* factors, cudaStream_t);

}  // namespace gnnd::cuda
