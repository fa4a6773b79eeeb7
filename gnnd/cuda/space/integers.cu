// SPDX-License-Identifier: MIT
// Vectors whose components are all integers of a byte are packed as such, whatever their type.
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/memory/fetch.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/space.h"

namespace gnnd::cuda {
namespace {

constexpr int kWarps = 8;

constexpr unsigned kNotU8 = 1, kNotI8 = 2;

/// Finds components that are no integers of either kind. One warp a row.
template <class T>
__global__ void integers_kernel(RawVectors vectors, unsigned* misfits) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    const unsigned known = *static_cast<volatile unsigned*>(misfits);
    if (i >= vectors.n || known == (kNotU8 | kNotI8)) return;
    const T* row = raw_row<T>(vectors, i);
    unsigned found = 0;
    for (std::int64_t c = lane_id(); c < vectors.d; c += kWarp) {
        const float x = float(row[c]);
        const bool integer = x == rintf(x);
        if (!(integer && x >= 0 && x <= 255)) found |= kNotU8;
        if (!(integer && x >= -128 && x <= 127)) found |= kNotI8;
    }
    found = __reduce_or_sync(kAllLanes, found);
    if (lane_id() == 0 && (found & ~known) != 0) atomicOr(misfits, found);
}

}  // namespace

void find_integers(const RawVectors& vectors, Metric metric, VectorForm& form, unsigned* misfits, cudaStream_t stream) {
    if (is_byte(vectors.dtype) || !is_unnormalized_product(metric) || vectors.d > kMaxIntegerDim) return;
    GNND_CUDA(cudaMemsetAsync(misfits, 0, sizeof(unsigned), stream));
    visit_dtype(vectors.dtype, [&](auto component) {
        integers_kernel<decltype(component)>
            <<<blocks_for(vectors.n, kWarps), kWarps * kWarp, 0, stream>>>(vectors, misfits);
        GNND_LAUNCHED("integers_kernel");
    });
    const unsigned found = fetch<unsigned>(misfits, stream);
    if ((found & kNotU8) == 0)
        form = integer_form(PackedType::u8, vectors.d);
    else if ((found & kNotI8) == 0)
        form = integer_form(PackedType::i8, vectors.d);
}

}  // namespace gnnd::cuda
