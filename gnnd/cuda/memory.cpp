#include "gnnd/cuda/memory.h"

#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "gnnd/error.h"

namespace gnnd {
namespace cuda {
namespace {

/// Never destroyed: the driver may be gone before a static would be.
struct PinnedStore {
    std::mutex mutex;
    std::vector<void*> pages;
};
PinnedStore& store() {
    static PinnedStore& store = *new PinnedStore;
    return store;
}

}  // namespace

void* take_pinned_page() {
    {
        const std::lock_guard lock(store().mutex);
        if (!store().pages.empty()) {
            void* page = store().pages.back();
            store().pages.pop_back();
            return page;
        }
    }
    void* page = nullptr;
    GNND_CUDA(cudaHostAlloc(&page, kPinnedPage, cudaHostAllocPortable));
    return page;
}

void give_back_pinned_page(void* page) noexcept {
    const std::lock_guard lock(store().mutex);
    try {
        store().pages.push_back(page);
    } catch (const std::bad_alloc&) {
        ignore(cudaFreeHost(page));
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
