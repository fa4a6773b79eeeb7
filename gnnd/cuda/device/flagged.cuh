// SPDX-License-Identifier: MIT
#pragma once
/// \file flagged.cuh
/// The numbers of objects that are flagged.

#include <thrust/iterator/counting_iterator.h>

#include <cstdint>
#include <cub/device/device_select.cuh>

#include "gnnd/cuda/runtime/errors.h"

namespace gnnd::cuda {

/// Of so many objects.
class Flagged {
  public:
    Flagged(std::int64_t objects, cudaStream_t stream) : objects_(int(objects)), stream_(stream) {
        list(nullptr, nullptr, nullptr, nullptr);
    }
    /// Bytes that list() works in.
    std::size_t work_bytes() const { return work_bytes_; }
    /// Starts to write the numbers, ascending, and how many they are.
    /// \param flags    a byte an object, 0 or 1
    /// \param numbers  room for all that are flagged
    void list(void* work, const std::uint8_t* flags, std::int32_t* numbers, std::int32_t* count) {
        GNND_CUDA(cub::DeviceSelect::Flagged(work, work_bytes_, thrust::counting_iterator<std::int32_t>(0), flags,
                                             numbers, count, objects_, stream_));
    }

  private:
    int objects_;
    cudaStream_t stream_;
    std::size_t work_bytes_ = 0;
};

}  // namespace gnnd::cuda
