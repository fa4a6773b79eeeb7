// SPDX-License-Identifier: MIT
#pragma once
/// \file generate_on_device.h
/// The vectors of generate.h, many at a time in a device's memory.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "benchs/generate.h"

namespace gnnd::benchs {

/// Rows [begin, begin + count) of the mix into out, count x d, row-major; everything in device memory. Asynchronous:
/// the arrays must stay until the stream is through. Throws InvalidArgument (a size out of its range) and Error (a CUDA
/// call failed; names the call, file and line).
void generate(const Mix& mix, std::int64_t begin, std::int64_t count, std::uint8_t* out, cudaStream_t stream);

/// Rows [begin, begin + count) of the manifold into out, count x d, row-major, in device memory. Asynchronous; takes
/// 4 * manifold.parameters() bytes from the device's memory pool while it runs. Throws like the mix, and
/// OutOfDeviceMemory.
void generate(const Manifold& manifold, std::int64_t begin, std::int64_t count, float* out, cudaStream_t stream);

}  // namespace gnnd::benchs
