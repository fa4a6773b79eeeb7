// SPDX-License-Identifier: MIT
#pragma once
/// \file device_memory.h
/// Memory of a GPU that outlives a build.

#include <cstddef>
#include <cstdint>

#include "caller.h"

namespace gnnd::python {

/// One block. Made and ended with the GIL.
class DeviceMemory {
  public:
    /// \param memory  where it comes from and goes back to; where that is none CUDA's pool, as of builds, or the driver
    ///                where there are several GPUs
    /// \param stream  that the memory is to be used on first; 0: on any
    /// \throws OutOfDeviceMemory, and Unavailable where CUDA is not compiled in
    DeviceMemory(int device, std::size_t bytes, CallerMemory memory, std::uintptr_t stream);
    /// Waits for all that the device has to do: consumers may still read. In a process that was forked it does nothing,
    /// for CUDA is none of its business.
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    std::uintptr_t pointer() const { return reinterpret_cast<std::uintptr_t>(data_); }
    int device() const { return device_; }

  private:
    int device_;
    std::size_t bytes_;
    CallerMemory memory_;
    std::uintptr_t stream_;
    int process_;          ///< that it was made in
    bool pooled_ = false;  ///< of CUDA's pool, which another GPU sees only where it was opened to it
    void* data_ = nullptr;
};

/// The GPU that this thread works on.
int current_device() noexcept;

/// Copies rows, `stride` bytes from one to the next, to the host without gaps, in order with the stream; they are there
/// when it returns.
void copy_to_host(int device, std::uintptr_t stream, void* out, const void* rows, std::int64_t count,
                  std::size_t row_bytes, std::size_t stride);

/// Waits until all work on the stream is done, so that arrays may be used on any other.
/// \param stream  a cudaStream_t, 1 for the legacy default stream, 2 for the thread's
void synchronize(int device, std::uintptr_t stream);

/// Default streams are of every GPU. \throws InvalidArgument for a stream of another one
void check_stream(int device, std::uintptr_t stream);

}  // namespace gnnd::python
