// SPDX-License-Identifier: MIT
#pragma once
/// \file driver.h
/// Calls of CUDA's driver for what its runtime does not offer without making a context on the current device. The
/// runtime finds them, so that nothing links against the driver.

#include <cuda.h>

#include <cstdint>

namespace gnnd::cuda {

/// Binds the device's primary context, which is the one that the runtime uses, to this thread. What was bound before
/// comes back with pop_context().
void push_context(int device);
void pop_context() noexcept;

/// True if this process has a context on the device.
bool has_context(int device);

/// The device in whose memory the pointer lies, -1 for host memory of any kind.
int device_of_pointer(const void* pointer);

/// Rows of bytes as Hopper's copy engine sees them: boxes of `box_bytes` (128) of `box_rows` rows, which land in shared
/// memory with their 16-byte chunks permuted as chunk_offset() of device/tile.cuh does, zeros where there is no row.
/// \param row_bytes  a multiple of 16
CUtensorMap rows_as_tensor(const void* rows, std::int64_t count, int row_bytes, int box_bytes, int box_rows);

}  // namespace gnnd::cuda
