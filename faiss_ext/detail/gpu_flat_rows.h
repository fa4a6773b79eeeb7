// SPDX-License-Identifier: MIT
#pragma once
/// \file gpu_flat_rows.h
/// Where a GpuIndexFlat keeps its vectors: FAISS tells that only to nvcc.

namespace faiss::gpu {
class GpuIndexFlat;
}

namespace faiss_ext::detail {

struct GpuFlatRows {
    const void* data;  ///< n x d, on the index's device
    bool float16;      ///< else float32
};

GpuFlatRows gpu_flat_rows(const faiss::gpu::GpuIndexFlat& index);

}  // namespace faiss_ext::detail
