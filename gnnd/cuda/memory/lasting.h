// SPDX-License-Identifier: MIT
#pragma once
/// \file lasting.h
/// Device memory that is held from one call to the next.

#include <cstddef>

#include "gnnd/resources.h"

namespace gnnd::cuda {

/// Device memory by cudaMalloc. In the driver's pool what is held counts as what that is to keep, see
/// keep_device_memory(), and of more than so much all that is given back goes at the next wait: the work memory of
/// every call, which takes a millisecond to come again.
class LastingMemory final : public Resources {
  public:
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    void* allocate_device(std::size_t bytes, Stream stream) override;
    std::size_t free_device_memory() override { return heap_.free_device_memory(); }
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override;

  private:
    HeapResources heap_;
};

}  // namespace gnnd::cuda
