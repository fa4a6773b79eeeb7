// SPDX-License-Identifier: MIT
#pragma once
/// FAISS on a GPU.

#include <memory>
#include <string>

#include "faiss_ext/gpu.h"
#include "gnnd/params.h"

namespace cli {

/// FAISS's resources for the GPU that --device names; none for the CPU, or where `auto` finds no GPU that FAISS can
/// use.
class FaissGpu {
  public:
    /// \throws gnnd::Unavailable
    explicit FaissGpu(const gnnd::Device& device);
    faiss_ext::Gpu get() const { return {resources_.get(), index_}; }
    /// As --device takes it; "cpu" for what did not run there after all.
    std::string name(bool used) const;

  private:
    std::shared_ptr<faiss::gpu::GpuResourcesProvider> resources_;
    int index_ = 0;
};

}  // namespace cli
