// SPDX-License-Identifier: MIT
#include "device_memory.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"
#include "gnnd/resources.h"

namespace gnnd::python {

DeviceMemory::DeviceMemory(int device, std::size_t bytes, CallerMemory memory, std::uintptr_t stream)
    : device_(device), bytes_(bytes), memory_(std::move(memory)), stream_(stream), process_(getpid()) {
    if (bytes == 0) return;
    const cuda::UseDevice use(device);
    if (memory_) {
        data_ = memory_.allocate(bytes, device, stream);
        return;
    }
    int gpus = 0;
    GNND_CUDA(cudaGetDeviceCount(&gpus));
    pooled_ = gpus == 1;
    if (!pooled_) {
        GNND_CUDA(cudaMalloc(&data_, bytes));
        return;
    }
    check_stream(device, stream);  // else the memory would be that stream's GPU's
    data_ = HeapResources().allocate_device(bytes, reinterpret_cast<cudaStream_t>(stream));
    if (stream == 0) synchronize(device, stream);  // whoever uses it names no stream that could be waited for
}

DeviceMemory::~DeviceMemory() {
    if (data_ == nullptr || getpid() != process_) return;
    try {
        const cuda::UseDevice use(device_);
        if (cudaDeviceSynchronize() != cudaSuccess) {  // others may still use it: a capture, or an error that stays
            cuda::ignore(cudaGetLastError());
        } else if (memory_) {
            memory_.deallocate(data_, bytes_, device_, stream_);
        } else if (pooled_) {
            HeapResources().deallocate_device(data_, bytes_, cudaStreamLegacy);  // the caller's may be gone
        } else {
            cuda::ignore(cudaFree(data_));
        }
    } catch (const Error&) {  // the context is gone, and the memory with it
    }
}

void copy_to_host(int device, std::uintptr_t stream, void* out, const void* rows, std::int64_t count,
                  std::size_t row_bytes, std::size_t stride) {
    const cuda::UseDevice use(device);
    auto* const on = reinterpret_cast<cudaStream_t>(stream);
    if (row_bytes == stride)  // copies of rows take no rows of 2^31 bytes
        GNND_CUDA(cudaMemcpyAsync(out, rows, row_bytes * std::size_t(count), cudaMemcpyDeviceToHost, on));
    else
        GNND_CUDA(
            cudaMemcpy2DAsync(out, row_bytes, rows, stride, row_bytes, std::size_t(count), cudaMemcpyDeviceToHost, on));
    GNND_CUDA(cudaStreamSynchronize(on));
}

int current_device() noexcept {
    int device = 0;
    cuda::ignore(cudaGetDevice(&device));
    return device;
}

void synchronize(int device, std::uintptr_t stream) {
    const cuda::UseDevice use(device);
    GNND_CUDA(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)));
}

void check_stream(int device, std::uintptr_t stream) {
    auto* const given = reinterpret_cast<cudaStream_t>(stream);
    if (given == nullptr || given == cudaStreamLegacy || given == cudaStreamPerThread) return;
    int owner = device;
    GNND_CUDA(cudaStreamGetDevice(given, &owner));
    if (owner != device)
        throw InvalidArgument("a stream of cuda:" + std::to_string(owner) +
                              " for arrays on cuda:" + std::to_string(device));
}

}  // namespace gnnd::python
