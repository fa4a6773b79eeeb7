// SPDX-License-Identifier: MIT
#include "gnnd/cuda/runtime/errors.h"

#include <string>

#include "gnnd/error.h"

namespace gnnd::cuda {

void throw_cuda_error(cudaError_t error, const char* call, const char* file, int line) {
    cudaGetLastError();  // the next call shall not report it again
    const std::string message = std::string(call) + " at " + file + ":" + std::to_string(line) + ": " +
                                cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
    if (error == cudaErrorMemoryAllocation) throw OutOfDeviceMemory(message);
    throw DeviceError(message);
}

}  // namespace gnnd::cuda
