// SPDX-License-Identifier: MIT
#pragma once
/// \file raw.cuh
/// Components of vectors in the caller's own type.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "gnnd/cuda/space/space.h"

namespace gnnd::cuda {

/// Calls f with a value of the component's type.
template <class F>
void visit_dtype(DType dtype, F&& f) {
    visit(dtype, [&]<class T>(T) {
        if constexpr (std::is_same_v<T, half>)
            f(__half());
        else if constexpr (std::is_same_v<T, bfloat16>)
            f(__nv_bfloat16());
        else
            f(T());
    });
}

template <class T>
__device__ const T* raw_row(const RawVectors& vectors, std::int64_t i) {
    return reinterpret_cast<const T*>(vectors.data + i * vectors.stride);
}

}  // namespace gnnd::cuda
