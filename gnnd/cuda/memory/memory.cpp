#include "gnnd/cuda/memory/memory.h"

#include <map>
#include <mutex>
#include <new>
#include <string>

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

}  // namespace

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

PinnedMemory::~PinnedMemory() {
    const std::lock_guard lock(store().mutex);
    try {
        store().by_size.emplace(bytes_, data_);
    } catch (const std::bad_alloc&) {
        ignore(cudaFreeHost(data_));
    }
}

}  // namespace cuda

void* Resources::allocate_device(std::size_t bytes, Stream stream) {
    void* pointer = nullptr;
    const cudaError_t error = cudaMallocAsync(&pointer, bytes, stream);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        throw OutOfDeviceMemory("out of device memory: asked for " + std::to_string(bytes) + " bytes, " +
                                std::to_string(free_device_memory()) + " are free");
    }
    GNND_CUDA(error);
    return pointer;
}

std::size_t Resources::free_device_memory() {
    std::size_t free = 0, total = 0;
    GNND_CUDA(cudaMemGetInfo(&free, &total));
    // What the pool behind cudaMallocAsync keeps looks taken there.
    int device = 0;
    cudaMemPool_t pool = nullptr;
    std::uint64_t reserved = 0, used = 0;
    GNND_CUDA(cudaGetDevice(&device));
    GNND_CUDA(cudaDeviceGetMemPool(&pool, device));
    GNND_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    GNND_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    return free + std::size_t(reserved - used);
}

void Resources::deallocate_device(void* pointer, std::size_t, Stream stream) noexcept {
    cuda::ignore(cudaFreeAsync(pointer, stream));
}

}  // namespace gnnd
