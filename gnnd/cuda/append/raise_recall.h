// SPDX-License-Identifier: MIT
#pragma once
/// \file raise_recall.h
/// The end of append(), behind its searches: the recall of the old and of the added objects, measured apart, and raised
/// where it is less than was asked for.

#include <cuda_runtime_api.h>

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// Device memory that the measurement takes.
/// \param all    vectors of both sets, one behind the other on the device; the data may be null
/// \param added  so many of the last are measured as added
std::size_t bytes_of_measuring(const VectorView& all, std::int64_t added, const BuildParams& params);

/// The graph goes through what refine() does for the part that has less than was asked for, and once more for the other
/// one if that has, too; where the memory does not hold that it stays as it is; a recall of 1 is an OutOfDeviceMemory
/// then.
/// \param whole           all vectors, one behind the other, and their graph, on the device
/// \param ids, distances  the graph, to be written
/// \param held            bytes of device memory that the caller holds
void raise_recall(const detail::Input& whole, std::int64_t added, std::int32_t* ids, float* distances, std::size_t held,
                  const BuildParams& params, const Callbacks& callbacks, Resources& resources, cudaStream_t stream,
                  BuildStats& stats);

}  // namespace gnnd::cuda
