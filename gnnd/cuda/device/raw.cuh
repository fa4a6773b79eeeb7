// SPDX-License-Identifier: MIT
#pragma once
/// \file raw.cuh
/// Components of vectors in the caller's own type.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "gnnd/cuda/space/space.h"

namespace gnnd::cuda {

/// The type that kernels read components as, which host code has as T.
template <class T>
using DeviceComponent = std::conditional_t<std::is_same_v<T, half>, __half,
                                           std::conditional_t<std::is_same_v<T, bfloat16>, __nv_bfloat16, T>>;

/// Calls f with a value of the component's type.
template <class F>
void visit_dtype(DType dtype, F&& f) {
    visit(dtype, [&]<class T>(T) { f(DeviceComponent<T>()); });
}

template <class T>
__device__ const T* raw_row(const RawVectors& vectors, std::int64_t i) {
    return reinterpret_cast<const T*>(vectors.data + i * vectors.stride);
}

}  // namespace gnnd::cuda
