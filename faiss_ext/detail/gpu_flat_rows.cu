// SPDX-License-Identifier: MIT
#include <faiss/gpu/GpuIndexFlat.h>

#include <faiss/gpu/impl/FlatIndex.cuh>

#include "faiss_ext/detail/gpu_flat_rows.h"

namespace faiss_ext::detail {

GpuFlatRows gpu_flat_rows(const faiss::gpu::GpuIndexFlat& index) {
    // FAISS's accessor is not const; nothing is changed.
    faiss::gpu::FlatIndex& rows = *const_cast<faiss::gpu::GpuIndexFlat&>(index).getGpuData();
    if (rows.getUseFloat16()) return {rows.getVectorsFloat16Ref().data(), true};
    return {rows.getVectorsFloat32Ref().data(), false};
}

}  // namespace faiss_ext::detail
