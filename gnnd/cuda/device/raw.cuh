#pragma once
/// \file raw.cuh
/// Components of vectors in the caller's own type.

#include <cuda_fp16.h>

#include "gnnd/cuda/space.h"

namespace gnnd::cuda {

/// Calls f with a value of the component's type.
template <class F>
void visit_dtype(DType dtype, F&& f) {
    switch (dtype) {
        case DType::f32:
            return f(float());
        case DType::f16:
            return f(__half());
        case DType::u8:
            return f(std::uint8_t());
        default:
            return f(std::int8_t());
    }
}

template <class T>
__device__ const T* raw_row(const RawVectors& vectors, std::int64_t i) {
    return reinterpret_cast<const T*>(vectors.data + i * vectors.stride);
}

}  // namespace gnnd::cuda
