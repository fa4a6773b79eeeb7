// SPDX-License-Identifier: MIT
#pragma once
/// \file errors.h
/// Every CUDA call and every launch goes through these.

#include <cuda_runtime_api.h>

namespace gnnd::cuda {

/// Throws DeviceError (OutOfDeviceMemory where that is the cause) with the call, its place and CUDA's message.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call, const char* file, int line);

inline void check(cudaError_t error, const char* call, const char* file, int line) {
    if (error != cudaSuccess) throw_cuda_error(error, call, file, line);
}

/// Clears the error, for destructors and other places that must not throw.
inline void ignore(cudaError_t error) noexcept {
    if (error != cudaSuccess) cudaGetLastError();
}

}  // namespace gnnd::cuda

#define GNND_CUDA(call) ::gnnd::cuda::check(call, #call, __FILE__, __LINE__)
/// After a launch: `name` stands in the message.
#define GNND_LAUNCHED(name) ::gnnd::cuda::check(cudaGetLastError(), "launch of " name, __FILE__, __LINE__)
