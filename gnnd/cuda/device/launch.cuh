// SPDX-License-Identifier: MIT
#pragma once
/// \file launch.cuh
/// Starting kernels that need much shared memory.

#include <string>

#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"

namespace gnnd::cuda {

/// Allows a kernel that needs more than the usual 48 KiB of dynamic shared memory as much as the current device has:
/// the permission is the kernel's, and other threads may be starting it with more than this call needs.
template <class... Parameters>
cudaError_t allow_shared_memory(void (*kernel)(Parameters...), int bytes) {
    cudaFuncAttributes attributes{};
    if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess) return error;
    if (bytes <= attributes.maxDynamicSharedSizeBytes) return cudaSuccess;
    int device = 0, most = 0;
    if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
    const cudaError_t error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    most -= int(attributes.sharedSizeBytes);
    if (bytes > most) return cudaErrorInvalidValue;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

/// Allows it, or says what is wrong.
template <class... Parameters>
void prepare_launch(const char* name, void (*kernel)(Parameters...), int shared_bytes) {
    const cudaError_t error = allow_shared_memory(kernel, shared_bytes);
    if (error == cudaErrorInvalidValue) {
        ignore(error);
        throw InvalidArgument(std::string(name) + " needs " + std::to_string(shared_bytes) +
                              " bytes of shared memory a block, more than this GPU has; fewer samples need less");
    }
    check(error, name, __FILE__, __LINE__);
}

/// Starts a kernel with dynamic shared memory, more than 48 KiB if need be.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 blocks, int threads, int shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
    prepare_launch(name, kernel, shared_bytes);
    kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...);
    check(cudaGetLastError(), name, __FILE__, __LINE__);
}

/// The same, with blocks that are neighbours in x in clusters.
/// \param cluster  blocks of one, which divide blocks.x; 1: none
template <class... Parameters, class... Arguments>
void launch_clusters(const char* name, void (*kernel)(Parameters...), dim3 blocks, unsigned cluster, int threads,
                     int shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
    prepare_launch(name, kernel, shared_bytes);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = dim3(unsigned(threads));
    config.dynamicSmemBytes = std::size_t(shared_bytes);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, arguments...), name, __FILE__, __LINE__);
}

}  // namespace gnnd::cuda
