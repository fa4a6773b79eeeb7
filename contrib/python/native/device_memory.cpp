// SPDX-License-Identifier: MIT
#include "device_memory.h"

#include <cuda_runtime_api.h>

#include "gnnd/cuda/errors.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/error.h"

namespace gnnd::python {

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
    const cuda::UseDevice use(device);
    GNND_CUDA(cudaMalloc(&data_, bytes));
}

DeviceMemory::~DeviceMemory() {
    try {
        const cuda::UseDevice use(device_);
        cuda::ignore(cudaFree(data_));  // synchronises the device
    } catch (const Error&) {            // the context is gone, and the memory with it
    }
}

void DeviceMemory::copy_to_host(void* out) const {
    const cuda::UseDevice use(device_);
    GNND_CUDA(cudaMemcpy(out, data_, bytes_, cudaMemcpyDeviceToHost));
}

void synchronize(int device, std::uintptr_t stream) {
    const cuda::UseDevice use(device);
    GNND_CUDA(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)));
}

}  // namespace gnnd::python
