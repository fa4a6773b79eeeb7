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
        std::size_t free = 0, total = 0;
        cuda::ignore(cudaMemGetInfo(&free, &total));
        throw OutOfDeviceMemory("out of device memory: asked for " + std::to_string(bytes) + " bytes, " +
                                std::to_string(free) + " of " + std::to_string(total) + " are free");
    }
    GNND_CUDA(error);
    return pointer;
}

void Resources::deallocate_device(void* pointer, std::size_t, Stream stream) noexcept {
    cuda::ignore(cudaFreeAsync(pointer, stream));
}

}  // namespace gnnd
