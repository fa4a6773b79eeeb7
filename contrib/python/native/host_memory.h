// SPDX-License-Identifier: MIT
#pragma once
/// \file host_memory.h
/// Host memory of the graphs that Python gets. What a graph gives back is kept for the next one: touching new memory,
/// and giving it back to the system, takes longer than a small build on a GPU leaves time for (benchs/NOTEBOOK.md).

#include <cstddef>

#include "gnnd/resources.h"

namespace gnnd::python {

/// One block; its content is undefined.
class HostMemory {
  public:
    /// \throws std::bad_alloc
    explicit HostMemory(std::size_t bytes);
    ~HostMemory();
    HostMemory(HostMemory&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
    HostMemory& operator=(HostMemory&&) = delete;
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    void* data() const { return data_; }

  private:
    void* data_;
    std::size_t bytes_;
};

/// Work memory of calls that follow one another, as the merges of a worker do: large blocks are kept as those of graphs
/// are, small ones come from the heap.
class KeptResources final : public Resources {
  public:
    void* allocate(std::size_t bytes) override;
    void deallocate(void* pointer, std::size_t bytes) noexcept override;

  private:
    HeapResources heap_;
};

/// Limits the bytes that are kept; those beyond go back to the system at once, the oldest first.
void keep_host_memory(std::size_t bytes);
/// Bytes that are kept now.
std::size_t kept_host_memory();

}  // namespace gnnd::python
