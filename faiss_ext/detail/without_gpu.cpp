// SPDX-License-Identifier: MIT
// Stands in for the GPU sources where FAISS has no GPU support.
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/faiss_resources.h"

namespace faiss_ext {
namespace {

[[noreturn]] void fail_without_gpu() {
    detail::fail("faiss_ext was built with a FAISS that has no GPU support");
}

}  // namespace

bool faiss_has_gpu() {
    return false;
}
std::shared_ptr<faiss::gpu::GpuResourcesProvider> standard_gpu_resources() {
    fail_without_gpu();
}

struct FaissResources::State {};
FaissResources::FaissResources(const Gpu&) {
    fail_without_gpu();
}
FaissResources::~FaissResources() = default;
void* FaissResources::allocate(std::size_t) {
    fail_without_gpu();
}
void FaissResources::deallocate(void*, std::size_t) noexcept {}
gnnd::Stream FaissResources::stream() {
    fail_without_gpu();
}
void* FaissResources::allocate_device(std::size_t, gnnd::Stream) {
    fail_without_gpu();
}
void FaissResources::deallocate_device(void*, std::size_t, gnnd::Stream) noexcept {}
std::size_t FaissResources::free_device_memory() {
    fail_without_gpu();
}
gnnd::Staging FaissResources::staging() {
    fail_without_gpu();
}

namespace detail {

void check_gpu(const Gpu&, const char* who) {
    fail(std::string(who) + ": faiss_ext was built with a FAISS that has no GPU support");
}
bool read_gpu_index(const faiss::Index&, gnnd::VectorView&, std::unique_ptr<faiss::Index>&) {
    return false;
}

struct GpuFlatSearch::State {};
GpuFlatSearch::GpuFlatSearch(const Gpu&, const VectorSource&, std::int64_t, std::int64_t) {
    fail_without_gpu();
}
GpuFlatSearch::~GpuFlatSearch() = default;
void GpuFlatSearch::search(const VectorSource&, const std::int32_t*, std::int64_t, float*, idx_t*) {
    fail_without_gpu();
}

bool gpu_has_code_bytes(std::int64_t) {
    return false;
}
Ivfpq make_gpu_ivfpq(const Gpu&, const IvfpqShape&) {
    fail_without_gpu();
}

}  // namespace detail
}  // namespace faiss_ext
