// SPDX-License-Identifier: MIT
#include "tests/failing_device_memory.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>

namespace gnnd::test {
namespace {

std::atomic<bool> counting{false};
std::atomic<int> next_call{0}, first_failure{0}, most_failures{0};

bool is_allowed() {
    if (!counting) return true;
    const int behind = next_call++ - first_failure;
    return behind < 0 || behind >= most_failures;
}

}  // namespace

FailingDeviceMemory::FailingDeviceMemory(int allowed, int failures) {
    next_call = 0;
    first_failure = allowed;
    most_failures = failures;
    counting = true;
}
FailingDeviceMemory::~FailingDeviceMemory() {
    counting = false;
}
bool FailingDeviceMemory::has_failed() const {
    return next_call > first_failure;
}

}  // namespace gnnd::test

// What the linker calls in place of CUDA's by --wrap.
extern "C" {

cudaError_t __real_cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream);
cudaError_t __real_cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t __real_cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);

cudaError_t __wrap_cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
    return gnnd::test::is_allowed() ? __real_cudaMallocAsync(pointer, bytes, stream) : cudaErrorMemoryAllocation;
}
cudaError_t __wrap_cudaMalloc(void** pointer, std::size_t bytes) {
    return gnnd::test::is_allowed() ? __real_cudaMalloc(pointer, bytes) : cudaErrorMemoryAllocation;
}
cudaError_t __wrap_cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    return gnnd::test::is_allowed() ? __real_cudaHostAlloc(pointer, bytes, flags) : cudaErrorMemoryAllocation;
}
}
