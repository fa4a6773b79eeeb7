// SPDX-License-Identifier: MIT
#include "gnnd/cuda/runtime/driver.h"

#include <cudaTypedefs.h>

#include <string>

#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

/// The driver's function of this name, by default as of CUDA 11.0, which is older than every GPU that the kernels run
/// on.
template <class Function>
Function find(const char* name, [[maybe_unused]] unsigned version = 11000) {
    int count = 0;
    ignore(cudaGetDeviceCount(&count));  // starts the driver, and makes no context
    void* function = nullptr;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault);
#endif
    if (error != cudaSuccess || function == nullptr) {
        ignore(error);
        throw DeviceError(std::string("the CUDA driver has no ") + name);
    }
    return reinterpret_cast<Function>(function);
}

const auto& retain() {
    static const auto function = find<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain");
    return function;
}
const auto& release() {
    static const auto function = find<PFN_cuDevicePrimaryCtxRelease_v11000>("cuDevicePrimaryCtxRelease");
    return function;
}
const auto& state() {
    static const auto function = find<PFN_cuDevicePrimaryCtxGetState_v7000>("cuDevicePrimaryCtxGetState");
    return function;
}
const auto& push() {
    static const auto function = find<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent");
    return function;
}
const auto& pop() {
    static const auto function = find<PFN_cuCtxPopCurrent_v4000>("cuCtxPopCurrent");
    return function;
}
const auto& pointer_attribute() {
    static const auto function = find<PFN_cuPointerGetAttribute_v4000>("cuPointerGetAttribute");
    return function;
}

void check(CUresult result, const char* call, int device) {
    if (result == CUDA_SUCCESS) return;
    const std::string message =
        std::string(call) + " on device " + std::to_string(device) + ": driver error " + std::to_string(int(result));
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfDeviceMemory(message);
    throw DeviceError(message);
}

}  // namespace

void push_context(int device) {
    const bool active = has_context(device);
    pop();  // found now or never: pop_context() must not throw
    CUcontext context = nullptr;
    check(retain()(&context, device), "cuDevicePrimaryCtxRetain", device);
    // A context that was there has another owner. One that was not stays, as one that the runtime makes does.
    if (active) release()(device);
    check(push()(context), "cuCtxPushCurrent", device);
}

void pop_context() noexcept {
    CUcontext context = nullptr;
    pop()(&context);
}

bool has_context(int device) {
    unsigned flags = 0;
    int active = 0;
    check(state()(device, &flags, &active), "cuDevicePrimaryCtxGetState", device);
    return active != 0;
}

int device_of_pointer(const void* pointer) {
    const auto address = reinterpret_cast<CUdeviceptr>(pointer);
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    int device = -1;
    unsigned managed = 0;
    // Of pointers that the driver does not know every question is an error: ordinary host memory.
    if (pointer_attribute()(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) return -1;
    if (pointer_attribute()(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS) return -1;
    if (type != CU_MEMORYTYPE_DEVICE || managed != 0) return -1;
    if (pointer_attribute()(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS) return -1;
    return device;
}

CUtensorMap rows_as_tensor(const void* rows, std::int64_t count, int row_bytes, int box_bytes, int box_rows) {
    static const auto encode = find<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled", 12000);
    CUtensorMap map{};
    const cuuint64_t sizes[] = {cuuint64_t(row_bytes), cuuint64_t(count)}, pitch[] = {cuuint64_t(row_bytes)};
    const cuuint32_t box[] = {cuuint32_t(box_bytes), cuuint32_t(box_rows)}, every[] = {1, 1};
    const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(rows), sizes, pitch, box,
                                   every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw DeviceError("cuTensorMapEncodeTiled of " + std::to_string(count) + " rows of " +
                          std::to_string(row_bytes) + " bytes: driver error " + std::to_string(int(result)));
    return map;
}

}  // namespace gnnd::cuda
