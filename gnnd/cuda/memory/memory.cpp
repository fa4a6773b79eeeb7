// SPDX-License-Identifier: MIT
#include "gnnd/cuda/memory/memory.h"

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "gnnd/cuda/memory/lasting.h"
#include "gnnd/error.h"

namespace gnnd {
namespace cuda {
namespace {

/// Never destroyed: the driver may be gone before a static would be.
struct PinnedStore {
    std::mutex mutex;
    std::multimap<std::size_t, void*> by_size;
};
PinnedStore& store() {
    static PinnedStore& store = *new PinnedStore;
    return store;
}

int current_device() {
    int device = 0;
    GNND_CUDA(cudaGetDevice(&device));
    return device;
}

/// See let_pools_serve().
std::atomic<bool> pools_serve{true};

/// Some virtual GPUs have no memory pools; there allocations wait for the device.
bool has_pool(int device) noexcept {
    if (!pools_serve) return false;
    int supported = 0;
    ignore(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
    return supported != 0;
}

cudaMemPool_t pool_of(int device) {
    cudaMemPool_t pool = nullptr;
    GNND_CUDA(cudaDeviceGetMemPool(&pool, device));
    return pool;
}

/// See keep_device_memory().
std::atomic<std::uint64_t> kept_bytes{std::uint64_t(3) << 29};
/// The GPUs that a build took memory on, however many there are. Never destroyed, as the store.
struct UsedDevices {
    std::mutex mutex;
    std::set<int> numbers;

    void add(int device) {
        const std::lock_guard lock(mutex);
        numbers.insert(device);
    }
    std::set<int> all() {
        const std::lock_guard lock(mutex);
        return numbers;
    }
};
UsedDevices& used_devices() {
    static UsedDevices& devices = *new UsedDevices;
    return devices;
}

/// Before every allocation, since others may have set it back: that takes less than a microsecond.
void let_pool_keep(int device) {
    used_devices().add(device);
    std::uint64_t threshold = 0, wanted = kept_bytes;
    GNND_CUDA(cudaMemPoolGetAttribute(pool_of(device), cudaMemPoolAttrReleaseThreshold, &threshold));
    if (threshold < wanted)
        GNND_CUDA(cudaMemPoolSetAttribute(pool_of(device), cudaMemPoolAttrReleaseThreshold, &wanted));
}

/// What an allocation has said; there may be none.
void check_allocation(cudaError_t error, std::size_t bytes, Resources& resources) {
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        throw OutOfDeviceMemory("out of device memory: asked for " + std::to_string(bytes) + " bytes, " +
                                std::to_string(resources.free_device_memory()) + " are free");
    }
    GNND_CUDA(error);
}

}  // namespace

void let_pools_serve(bool wanted) {
    pools_serve = wanted;
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    {
        const std::lock_guard lock(store().mutex);
        if (const auto found = store().by_size.find(bytes); found != store().by_size.end()) {
            data_ = found->second;
            store().by_size.erase(found);
            return;
        }
    }
    GNND_CUDA(cudaHostAlloc(&data_, bytes, cudaHostAllocPortable));
}

bool PinnedMemory::is_kept(std::size_t bytes) {
    const std::lock_guard lock(store().mutex);
    return store().by_size.contains(bytes);
}

PinnedMemory::~PinnedMemory() {
    const std::lock_guard lock(store().mutex);
    try {
        store().by_size.emplace(bytes_, data_);
    } catch (const std::bad_alloc&) {
        ignore(cudaFreeHost(data_));
    }
}

void* LastingMemory::allocate_device(std::size_t bytes, Stream /*stream*/) {
    void* pointer = nullptr;
    const int device = current_device();
    cudaError_t error = cudaMalloc(&pointer, bytes);
    if (error == cudaErrorMemoryAllocation && has_pool(device)) {  // which may lie in the pool, given back
        cudaGetLastError();
        GNND_CUDA(cudaMemPoolTrimTo(pool_of(device), 0));
        error = cudaMalloc(&pointer, bytes);
    }
    check_allocation(error, bytes, *this);
    return pointer;
}

void LastingMemory::deallocate_device(void* pointer, std::size_t /*bytes*/, Stream /*stream*/) noexcept {
    ignore(cudaFree(pointer));
}

}  // namespace cuda

void* Resources::allocate_device(std::size_t bytes, Stream stream) {
    void* pointer = nullptr;
    const int device = cuda::current_device();
    const bool pooled = cuda::has_pool(device);
    if (pooled) cuda::let_pool_keep(device);
    cuda::check_allocation(pooled ? cudaMallocAsync(&pointer, bytes, stream) : cudaMalloc(&pointer, bytes), bytes,
                           *this);
    return pointer;
}

std::size_t Resources::free_device_memory() {
    std::size_t free = 0, total = 0;
    GNND_CUDA(cudaMemGetInfo(&free, &total));
    const int device = cuda::current_device();
    if (cuda::has_pool(device)) {  // what the pool behind cudaMallocAsync keeps looks taken there
        cudaMemPool_t pool = cuda::pool_of(device);
        std::uint64_t reserved = 0, used = 0;
        GNND_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
        GNND_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
        free += std::size_t(reserved - used);
    }
    return free > cuda::kMemoryReserve ? free - cuda::kMemoryReserve : 1;  // 0 would say that it is unknown
}

void Resources::deallocate_device(void* pointer, std::size_t, Stream stream) noexcept {
    int device = 0;
    cuda::ignore(cudaGetDevice(&device));
    cuda::ignore(cuda::has_pool(device) ? cudaFreeAsync(pointer, stream) : cudaFree(pointer));
}

void keep_device_memory(std::size_t bytes) {
    cuda::kept_bytes = bytes;
    for (const int device : cuda::used_devices().all()) {
        const cuda::UseDevice use(device);
        GNND_CUDA(cudaDeviceSynchronize());  // the last build's free may still wait in its stream
        std::uint64_t threshold = bytes;
        GNND_CUDA(cudaMemPoolSetAttribute(cuda::pool_of(device), cudaMemPoolAttrReleaseThreshold, &threshold));
        GNND_CUDA(cudaMemPoolTrimTo(cuda::pool_of(device), 0));
    }
}

}  // namespace gnnd
