// SPDX-License-Identifier: MIT
// GPU indexes: reading their vectors, and making the IVFPQ baseline.
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>

#include <algorithm>
#include <array>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/gpu_flat_rows.h"

namespace faiss_ext::detail {

bool read_gpu_index(const faiss::Index& index, gnnd::VectorView& view, std::unique_ptr<faiss::Index>& copy) {
    const auto* on_gpu = dynamic_cast<const faiss::gpu::GpuIndex*>(&index);
    if (on_gpu == nullptr) return false;
    const auto* flat = dynamic_cast<const faiss::gpu::GpuIndexFlat*>(on_gpu);
    if (flat == nullptr) {
        copy.reset(faiss::gpu::index_gpu_to_cpu(&index));
        return true;
    }
    const_cast<faiss::gpu::GpuIndex*>(on_gpu)->getResources()->syncDefaultStream(on_gpu->getDevice());
    const GpuFlatRows rows = gpu_flat_rows(*flat);
    view = {rows.data, index.ntotal, index.d, rows.float16 ? gnnd::DType::f16 : gnnd::DType::f32, 0};
    return true;
}

bool gpu_has_code_bytes(std::int64_t bytes) {
    static constexpr std::array kSizes{1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96};
    return std::find(kSizes.begin(), kSizes.end(), bytes) != kSizes.end();
}

namespace {

/// False where FAISS leaves lists to cuVS, or to RAFT before it, which knows no room and says so on standard error.
template <class Config>
bool has_room_in_lists(const Config& config) {
    if constexpr (requires { config.use_cuvs; })
        return !config.use_cuvs;
    else if constexpr (requires { config.use_raft; })
        return !config.use_raft;
    return true;
}

}  // namespace

Ivfpq make_gpu_ivfpq(const Gpu& gpu, const IvfpqShape& shape) {
    constexpr int kMostFloatBytes = 48;  // lookup tables of more are too large for shared memory in float32
    faiss::gpu::GpuIndexIVFPQConfig config;
    config.device = gpu.device;
    config.useFloat16LookupTables = shape.code_bytes > kMostFloatBytes;
    auto index = std::make_unique<faiss::gpu::GpuIndexIVFPQ>(gpu.resources, int(shape.d), int(shape.nlist),
                                                             shape.code_bytes, 8, shape.metric, config);
    configure(*index, shape);
    // Else each list allocates its codes and ids anew whenever they double.
    if (has_room_in_lists(config)) index->reserveMemory(std::size_t(shape.vectors));
    return with_nprobe(nullptr, std::move(index));
}

}  // namespace faiss_ext::detail
