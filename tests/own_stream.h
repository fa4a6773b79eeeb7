// SPDX-License-Identifier: MIT
#pragma once
/// \file own_stream.h
/// Resources for tests of builds on a GPU.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "gnnd/resources.h"

namespace gnnd::test {

/// Resources with a stream of the caller's, and device memory that runs out.
class OwnStream : public Resources {
  public:
    OwnStream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
    ~OwnStream() override { cudaStreamDestroy(stream_); }
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    Stream stream() override { return stream_; }
    void* allocate_device(std::size_t bytes, Stream stream) override {
        EXPECT_EQ(stream, stream_);
        ++allocations;
        return Resources::allocate_device(bytes, stream);
    }
    int allocations = 0;

  private:
    HeapResources heap_;
    cudaStream_t stream_ = nullptr;
};

}  // namespace gnnd::test
