// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file faiss_resources.h
/// FAISS's GPU resources as gnnd takes them.

#include <memory>

#include "faiss_ext/gpu.h"
#include "gnnd/resources.h"

namespace faiss_ext {

/// Device memory comes from GpuResources::allocMemoryHandle: from the temporary memory where it fits (a stack: in
/// whatever order a build gives pieces back, FAISS gets them from the last one on, and nobody else may use the
/// resources meanwhile), else from the device. Builds run on the default stream of the device (where that is the null
/// stream, on one of their own in order with it), copy on the asynchronous copy stream through the page-locked buffer,
/// and take work memory on the host from the heap. FAISS does not get over a device that had too little memory when it
/// was first used: try again with new resources.
class FaissResources final : public gnnd::Resources {
  public:
    /// \throws faiss::FaissException for null resources or a device that does not exist
    explicit FaissResources(const Gpu& gpu);
    ~FaissResources() override;

    void* allocate(std::size_t bytes) override;
    void deallocate(void* pointer, std::size_t bytes) noexcept override;
    gnnd::Stream stream() override;
    /// \throws faiss::FaissException, FAISS's own, when there is no more
    void* allocate_device(std::size_t bytes, gnnd::Stream stream) override;
    void deallocate_device(void* pointer, std::size_t bytes, gnnd::Stream stream) noexcept override;
    /// The larger of what is left of the temporary memory and what the driver has free.
    std::size_t free_device_memory() override;
    gnnd::Staging staging() override;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace faiss_ext
