// SPDX-License-Identifier: MIT
#pragma once
/// \file transfer.h
/// Between the host and the device. Ordinary (pageable) host memory goes through a page-locked buffer, the resources'
/// or for much at once one of gnnd's own: several threads fill or empty one part of it while another part is under way.

#include <cstddef>
#include <cstdint>

#include "gnnd/resources.h"

namespace gnnd::cuda {

/// Copies `rows` rows of `row_bytes` bytes, `stride` bytes from one to the next, to `device` without gaps, in order
/// with the stream. Ordinary host memory is free when it returns, other memory when the stream is done.
void copy_in(void* device, const void* source, std::int64_t rows, std::size_t row_bytes, std::size_t stride,
             Resources& resources, Stream stream);

/// Copies `bytes` bytes to host memory (or on the device), in order with the stream; they are there when the stream is
/// done.
void copy_out(void* host, const void* device, std::size_t bytes, Resources& resources, Stream stream);

/// The same for the ids and the distances of a graph, or of lists, of so many entries in all.
void copy_graph_out(std::int32_t* ids, float* distances, const void* device_ids, const float* device_distances,
                    std::int64_t entries, Resources& resources, Stream stream);

}  // namespace gnnd::cuda
