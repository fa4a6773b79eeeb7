// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file gpu.h
/// The GPU of a builder. Needs a FAISS with GPU support; without it everything here but faiss_has_gpu() throws.

#include <memory>

namespace faiss::gpu {
class GpuResourcesProvider;
}

namespace faiss_ext {

/// True where faiss_ext was built with a FAISS that has GPU support.
bool faiss_has_gpu();

/// The GPU that a builder runs on, or the CPU. FAISS's resources serve one thread at a time, and so do builders that
/// share them.
struct Gpu {
    faiss::gpu::GpuResourcesProvider* resources = nullptr;  ///< must outlive the builder; null: the CPU
    int device = 0;                                         ///< as in faiss::gpu::GpuIndexConfig
};

/// New faiss::gpu::StandardGpuResources, for those who have none yet.
/// \throws faiss::FaissException without GPU support or without a GPU
std::shared_ptr<faiss::gpu::GpuResourcesProvider> standard_gpu_resources();

}  // namespace faiss_ext
