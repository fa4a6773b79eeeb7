#pragma once
/// \file launch.cuh
/// Starting kernels that need much shared memory.

#include <string>

#include "gnnd/cuda/errors.h"
#include "gnnd/error.h"

namespace gnnd::cuda {

/// Starts a kernel with dynamic shared memory, more than 48 KiB if need be.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), unsigned blocks, int threads, int shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error == cudaErrorInvalidValue) {
        ignore(error);
        throw InvalidArgument(std::string(name) + " needs " + std::to_string(shared_bytes) +
                              " bytes of shared memory a block, more than this GPU has; fewer samples need less");
    }
    check(error, name, __FILE__, __LINE__);
    kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...);
    check(cudaGetLastError(), name, __FILE__, __LINE__);
}

}  // namespace gnnd::cuda
