// SPDX-License-Identifier: MIT
#pragma once
/// \file device_memory.h
/// Memory of a GPU that outlives a build.

#include <cstddef>
#include <cstdint>

namespace gnnd::python {

/// One block. \throws OutOfDeviceMemory, and Unavailable where CUDA is not compiled in
class DeviceMemory {
  public:
    DeviceMemory(int device, std::size_t bytes);
    /// Waits for all that the device has to do: consumers may still read.
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(data_); }
    int device() const { return device_; }
    void copy_to_host(void* out) const;

  private:
    int device_;
    std::size_t bytes_;
    void* data_ = nullptr;
};

/// Waits until all work on the stream is done, so that arrays may be used on any other.
/// \param stream  a cudaStream_t, 1 for the legacy default stream, 2 for the thread's
void synchronize(int device, std::uintptr_t stream);

}  // namespace gnnd::python
