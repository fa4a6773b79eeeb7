// SPDX-License-Identifier: MIT
#pragma once
/// \file device_array.h
/// An array on the current device, content undefined at first.

#include <cuda_runtime_api.h>

#include <cstddef>

#include "gnnd/cuda/runtime/errors.h"

namespace gnnd::benchs {

template <class T>
class DeviceArray {
  public:
    explicit DeviceArray(std::size_t size) { GNND_CUDA(cudaMalloc(&data_, size * sizeof(T))); }
    ~DeviceArray() { cuda::ignore(cudaFree(data_)); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    operator T*() const { return static_cast<T*>(data_); }

  private:
    void* data_ = nullptr;
};

}  // namespace gnnd::benchs
