// SPDX-License-Identifier: MIT
#include "faiss_ext/faiss_resources.h"

#include <cuda_runtime_api.h>
#include <faiss/gpu/StandardGpuResources.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "gnnd/device.h"

namespace faiss_ext {
namespace {

/// The alignment that gnnd promises its kernels. FAISS aligns temporary memory to 16 bytes.
constexpr std::size_t kAlignment = 256;

std::size_t with_alignment(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
}

}  // namespace

bool faiss_has_gpu() {
    return true;
}

std::shared_ptr<faiss::gpu::GpuResourcesProvider> standard_gpu_resources() {
    std::string why;
    if (gnnd::device_count(&why) == 0) detail::fail("there is no GPU: " + why);
    return std::make_shared<faiss::gpu::StandardGpuResources>();
}

void detail::check_gpu(const Gpu& gpu, const char* who) {
    if (gpu.resources == nullptr) fail(std::string(who) + ": the GPU resources are null");
    std::string why;
    const int count = gnnd::device_count(&why);
    if (count == 0) fail(std::string(who) + ": there is no GPU: " + why);
    if (gpu.device < 0 || gpu.device >= count)
        fail(std::string(who) + ": there is no GPU " + std::to_string(gpu.device) + ", they are numbered 0 to " +
             std::to_string(count - 1));
}

struct FaissResources::State {
    /// A piece of the temporary memory.
    struct Temporary {
        void* start;
        faiss::gpu::GpuMemoryReservation memory;
        bool given_back = false;  ///< but not to FAISS yet, which takes back the last piece alone
    };

    std::shared_ptr<faiss::gpu::GpuResources> faiss;
    int device;
    gnnd::HeapResources heap;
    std::mutex mutex;
    std::vector<Temporary> temporary;
    std::unordered_map<void*, faiss::gpu::GpuMemoryReservation> held;

    ~State() {
        while (!temporary.empty()) temporary.pop_back();  // a vector would begin with the first
    }
};

FaissResources::FaissResources(const Gpu& gpu) {
    detail::check_gpu(gpu, "FaissResources");
    state_ = std::make_unique<State>();
    state_->faiss = gpu.resources->getResources();
    state_->device = gpu.device;
    state_->faiss->initializeForDevice(gpu.device);
}

FaissResources::~FaissResources() = default;

void* FaissResources::allocate(std::size_t bytes) {
    return state_->heap.allocate(bytes);
}

void FaissResources::deallocate(void* pointer, std::size_t bytes) noexcept {
    state_->heap.deallocate(pointer, bytes);
}

gnnd::Stream FaissResources::stream() {
    return state_->faiss->getDefaultStream(state_->device);
}

void* FaissResources::allocate_device(std::size_t bytes, gnnd::Stream) {
    using faiss::gpu::MemorySpace;
    const std::lock_guard lock(state_->mutex);
    int current = -1;
    if (cudaGetDevice(&current) != cudaSuccess || current != state_->device)
        detail::fail("FaissResources: they are for GPU " + std::to_string(state_->device) +
                     ", asked for memory on GPU " + std::to_string(current));
    const std::size_t size = with_alignment(bytes);
    const bool fits = size <= state_->faiss->getTempMemoryAvailable(state_->device);
    faiss::gpu::GpuMemoryReservation memory = state_->faiss->allocMemoryHandle(faiss::gpu::AllocRequest(
        faiss::gpu::AllocType::Other, state_->device, fits ? MemorySpace::Temporary : MemorySpace::Device,
        // Not the build's own stream where FAISS's is the null stream: FAISS remembers it.
        state_->faiss->getDefaultStream(state_->device), size));
    void* start = memory.get();
    std::size_t space = size;
    std::align(kAlignment, bytes, start, space);
    if (fits)
        state_->temporary.push_back({start, std::move(memory)});
    else
        state_->held.emplace(start, std::move(memory));
    return start;
}

void FaissResources::deallocate_device(void* pointer, std::size_t, gnnd::Stream) noexcept {
    const std::lock_guard lock(state_->mutex);
    for (State::Temporary& piece : state_->temporary) piece.given_back |= piece.start == pointer;
    while (!state_->temporary.empty() && state_->temporary.back().given_back) state_->temporary.pop_back();
    state_->held.erase(pointer);
}

std::size_t FaissResources::free_device_memory() {
    const std::size_t temporary = state_->faiss->getTempMemoryAvailable(state_->device);
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
    const std::size_t most = std::max(temporary, free);
    return most > 2 * kAlignment ? most - 2 * kAlignment : 1;
}

gnnd::Staging FaissResources::staging() {
    const auto [data, bytes] = state_->faiss->getPinnedMemory();
    if (data == nullptr) return {};
    return {data, bytes, state_->faiss->getAsyncCopyStream(state_->device)};
}

}  // namespace faiss_ext
