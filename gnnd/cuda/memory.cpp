#include "gnnd/cuda/memory.h"

#include <string>

#include "gnnd/error.h"

namespace gnnd {

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
