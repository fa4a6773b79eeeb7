// SPDX-License-Identifier: MIT
// The GPUs of this machine: their number, the pointers into their memory, and copies from it.
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/runtime/driver.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/detail/predict.h"

namespace gnnd::cuda {
namespace {

std::string version_text(int version) {  // as CUDA numbers them: 13020 is 13.2
    return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

/// CUDA says the same of a driver that is too old and of none at all.
std::string no_device_reason(cudaError_t error) {
    if (error == cudaSuccess) return "no GPU is visible to this process";
    int driver = 0;
    if (error != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess)
        return cudaGetErrorString(error);
    if (driver == 0) return "there is no NVIDIA driver";
    return "the NVIDIA driver is too old: it is made for CUDA " + version_text(driver) + ", gnnd was compiled with " +
           version_text(CUDART_VERSION);
}

detail::GpuTraits read_traits(int index) {
    cudaDeviceProp properties{};
    GNND_CUDA(cudaGetDeviceProperties(&properties, index));
    const auto attribute = [index](cudaDeviceAttr which) {
        int value = 0;
        GNND_CUDA(cudaDeviceGetAttribute(&value, which, index));
        return double(value);
    };
    constexpr double kKilo = 1000, kBits = 8, kTransfers = 2;  // a transfer at either edge of the memory's clock
    return {.name = properties.name,
            .major = properties.major,
            .minor = properties.minor,
            .wgmma = properties.major == 9,  // CMake compiles for it
            .multiprocessors = double(properties.multiProcessorCount),
            .clock = attribute(cudaDevAttrClockRate) * kKilo,
            .bytes_per_second = attribute(cudaDevAttrMemoryClockRate) * kKilo * kTransfers *
                                attribute(cudaDevAttrGlobalMemoryBusWidth) / kBits};
}

}  // namespace

int device_count(std::string* why) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        cudaGetLastError();
        count = 0;
    }
    if (count == 0 && why != nullptr) *why = no_device_reason(error);
    return count;
}

bool usable(int index, std::string& why) {
    constexpr int kLeast = 8;  // major number of the compute capability; cp.async, and what CMake compiles for
    const int count = device_count(&why);
    if (count == 0) return false;
    int major = 0;
    if (index >= count)
        why = "there are " + std::to_string(count) + " GPUs, numbered from 0";
    else if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess || major < kLeast)
        why = "its compute capability is " + std::to_string(major) + ".x, the kernels need " + std::to_string(kLeast) +
              ".0";
    else
        return true;
    cudaGetLastError();
    return false;
}

/// The driver takes 0.6 ms for each of the clocks (benchs/NOTEBOOK.md), of builds that take 4 and more.
const detail::GpuTraits& traits_of(int index) {
    static std::mutex mutex;
    static std::map<int, detail::GpuTraits> read;
    const std::lock_guard lock(mutex);
    const auto known = read.find(index);
    return known != read.end() ? known->second : read.emplace(index, read_traits(index)).first->second;
}

int device_of(const void* pointer) {
    return device_count() == 0 ? kHost : device_of_pointer(pointer);
}

void copy_to_host(const VectorView& vectors, void* out) {
    std::optional<UseDevice> device;
    if (const int place = device_of(vectors.data); place != kHost) device.emplace(place);
    const std::size_t row = std::size_t(vectors.d) * size_of(vectors.dtype);
    GNND_CUDA(cudaMemcpy2D(out, row, vectors.data, std::size_t(vectors.row_bytes()), row, std::size_t(vectors.n),
                           cudaMemcpyDefault));
}

}  // namespace gnnd::cuda
