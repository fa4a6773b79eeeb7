// SPDX-License-Identifier: MIT
#pragma once
/// \file caller.h
/// A build on a GPU takes from its caller the stream, and the memory where Python's libraries are to give it.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gnnd/resources.h"

namespace gnnd::python {

/// Device memory from an allocator of gnnd/_allocators.py, which may be called from any thread.
class CallerMemory {
  public:
    /// \param allocator  with allocate(), deallocate() and free(); None: there is none
    explicit CallerMemory(nanobind::object allocator) : allocator_(std::move(allocator)) {}
    explicit operator bool() const { return !allocator_.is_none(); }

    /// \throws OutOfDeviceMemory for a MemoryError, nanobind::python_error for others
    void* allocate(std::size_t bytes, int device, std::uintptr_t stream) const;
    /// Prints what the allocator raises, as Python does with exceptions in a destructor.
    void deallocate(void* pointer, std::size_t bytes, int device, std::uintptr_t stream) const noexcept;
    /// Bytes that it could give; 0: it does not know.
    std::size_t free(int device) const;

  private:
    nanobind::object allocator_;
};

/// The caller's settings for the run of a build.
struct Run {
    nanobind::object out;       ///< (ids, distances) on a GPU, which the graph goes to; None: to new arrays on the host
    int gpu = -1;               ///< that holds arrays of the call; -1: none
    std::uintptr_t stream = 0;  ///< of that GPU; 0: a build's own
    nanobind::object allocator;  ///< see CallerMemory
    nanobind::object progress;   ///< see Hooks
};

/// Work on the caller's stream, in the caller's device memory. Made and ended with the GIL.
class CallerResources final : public Resources {
  public:
    /// \throws InvalidArgument for a stream of another GPU
    explicit CallerResources(const Run& run);
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    Stream stream() override { return stream_; }
    void* allocate_device(std::size_t bytes, Stream stream) override;
    std::size_t free_device_memory() override;
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override;

  private:
    HeapResources heap_;
    Stream stream_;
    CallerMemory memory_;
};

}  // namespace gnnd::python
