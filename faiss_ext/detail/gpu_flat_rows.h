// SPDX-License-Identifier: MIT
#pragma once
/// \file gpu_flat_rows.h
/// The address of the vectors of a GpuIndexFlat, which FAISS tells only to nvcc.

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
