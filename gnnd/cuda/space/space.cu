// SPDX-License-Identifier: MIT
// Checking and packing: what the vectors go through before the first step.
#include <cfloat>
#include <cmath>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/row_scale.cuh"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/codes.h"

namespace gnnd::cuda {
namespace {

constexpr int kWarps = 8;
/// Rows that the centre is taken from; any point inside the data does, so a sample is enough.
constexpr int kCentreRows = 1024, kCentreWarps = 32;

constexpr int kScaleThreads = 512;

/// The metric as packing sees it.
struct Traits {
    bool centre;  ///< distances stay what they are when the origin moves, and f16 has more digits near it
    bool normalized, nonnegative, similarity;
    bool is_l2;  ///< squared differences from products: of l2, and of cosine, which is half of it for vectors of norm 1
    int degree;  ///< list distances grow by this power of the scale
};

Traits traits_of(Metric metric) {
    return visit(metric, []<class M>(M) -> Traits {
        return {M::translation_invariant || M::normalized,
                M::normalized,
                M::nonnegative,
                M::similarity,
                M::is_product && (M::translation_invariant || M::normalized),
                M::normalized ? 2 : M::degree};
    });
}

__global__ void reset_kernel(SpaceInfo* info) {
    *info = {~0ull, 0, 0, 1, 1, 0, 0, 0, 0, 1};
}

/// The mean of some rows: distances that only see differences lose fewer digits to f16 near 0. Behind the means, the
/// means of the squares. A block has 32 components, and each of its warps some of the rows.
/// \param mean  2 x d, written
template <class T>
__global__ void __launch_bounds__(kCentreWarps* kWarp) centre_kernel(RawVectors vectors, bool centre, float* mean) {
    __shared__ float sums[kCentreWarps][kWarp], squares[kCentreWarps][kWarp];
    const int lane = lane_id(), warp = threadIdx.x / kWarp;
    const std::int64_t c = std::int64_t(blockIdx.x) * kWarp + lane;
    const int rows = int(min(vectors.n, std::int64_t(kCentreRows)));
    float sum = 0, square = 0;
    if (centre && c < vectors.d)
#pragma unroll 4
        for (int r = warp; r < rows; r += kCentreWarps) {
            const float x = float(raw_row<T>(vectors, vectors.n * r / rows)[c]);
            sum += x;
            square += x * (x / float(rows));  // the sum of all may be too large
        }
    sums[warp][lane] = sum;
    squares[warp][lane] = square;
    __syncthreads();
    if (warp != 0 || c >= vectors.d) return;
    for (int w = 1; w < kCentreWarps; ++w) {
        sum += sums[w][lane];
        square += squares[w][lane];
    }
    mean[c] = isfinite(sum) ? sum / float(rows) : 0.0f;
    mean[vectors.d + c] = isfinite(square) ? square : 0.0f;
}

/// Finds rows that cannot be used (the same rules as cpu/check.cpp) and the largest component. One warp a row.
/// \param mean  d
template <class T>
__global__ void scan_kernel(RawVectors vectors, Traits traits, const float* mean, SpaceInfo* info) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (i >= vectors.n) return;
    const T* row = raw_row<T>(vectors, i);
    float sum = 0, least = 0, largest = 0;
    for (std::int64_t c = lane_id(); c < vectors.d; c += kWarp) {
        const float x = float(row[c]);
        sum += x * x;
        least = fminf(least, x);
        largest = fmaxf(largest, fabsf(x - mean[c]));
    }
    sum = warp_sum(sum);
    for (int step = kWarp / 2; step > 0; step /= 2) {
        least = fminf(least, __shfl_xor_sync(kAllLanes, least, step));
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, step));
    }
    if (lane_id() != 0) return;
    const bool bad = !(sum <= FLT_MAX / 4) || (traits.normalized && sum < FLT_MIN) || (traits.nonnegative && least < 0);
    if (bad)
        atomicMin(&info->first_bad, static_cast<unsigned long long>(i));
    else if (__float_as_uint(largest) > info->largest)  // most rows need not ask
        atomicMax(&info->largest, __float_as_uint(largest));
}

/// Chooses the power of two that brings the components into the middle of what f16 holds, and what turns list distances
/// into the metric's values. Cosine is half the squared distance of the normalised vectors, taken from 1: as a
/// difference it keeps the digits that a product near 1 would lose. By one block; sums in the same order always.
/// \param mean  2 x d, as centre_kernel() leaves it
__global__ void __launch_bounds__(kScaleThreads)
    scale_kernel(SpaceInfo* info, const float* mean, std::int64_t d, Traits traits, bool f16) {
    __shared__ float parts[kScaleThreads / kWarp];
    if (traits.normalized) {
        float sum = 0;
        for (std::int64_t c = threadIdx.x; c < d; c += kScaleThreads) sum += mean[d + c];
        sum = warp_sum(sum);
        if (lane_id() == 0) parts[threadIdx.x / kWarp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            info->mean_square = 0;
            for (const float part : parts) info->mean_square += part;
        }
    }
    if (threadIdx.x != 0) return;
    constexpr int kExponent = 9;  // 2^9: f16 reaches from there to 2^16 upwards and 2^-14 downwards
    const float largest = traits.normalized ? 1.0f : __uint_as_float(info->largest);
    const float scale =
        f16 && largest > 0 ? fminf(exp2f(float(kExponent - ilogbf(largest))), largest_scale(traits.degree)) : 1.0f;
    info->unit = traits.similarity ? -1.0f : 1.0f;
    set_scale(info, scale, traits.degree);
    if (traits.normalized) {
        info->unit *= 0.5f;
        info->offset = 1;
    }
}

/// Writes one packed row and its bias, the squared norm of what was packed. One warp a row.
/// \param mean  d
/// \param rows  n x row_bytes, written
/// \param bias  n, written
template <class T, PackedType C>
__global__ void pack_kernel(RawVectors vectors, bool normalized, const float* mean, const SpaceInfo* info,
                            std::uint8_t* rows, int row_bytes, u32* bias) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (i >= vectors.n) return;
    const T* row = raw_row<T>(vectors, i);
    if constexpr (C == PackedType::f16) {
        const RowScale scale = scale_of_row(row, vectors.d, normalized, info);
        __half* packed = reinterpret_cast<__half*>(rows + i * row_bytes);
        float norm = 0;
        const auto value_at = [&](int c) {
            return c < vectors.d ? __float2half(float(row[c]) * scale.of_row - mean[c] * scale.of_mean) : __half(0.0f);
        };
        // A row is whole pieces of 16 bytes. As many loads are on their way together as hide what each takes.
#pragma unroll 4
        for (int c = 2 * lane_id(); c < row_bytes / 2; c += 2 * kWarp) {
            const __half2 two = __halves2half2(value_at(c), value_at(c + 1));
            *reinterpret_cast<__half2*>(packed + c) = two;
            const float2 wide = __half22float2(two);
            norm += wide.x * wide.x + wide.y * wide.y;
        }
        norm = warp_sum(norm);
        if (lane_id() == 0) bias[i] = __float_as_uint(norm);
    } else {
        int norm = 0;
        for (int c = lane_id(); c < row_bytes; c += kWarp) {
            const int value = c < vectors.d ? int(float(row[c])) : 0;
            if (rows != nullptr) rows[i * row_bytes + c] = std::uint8_t(value);
            norm += value * value;
        }
        norm = warp_sum(norm);
        if (lane_id() == 0) bias[i] = u32(norm);
    }
}

/// Writes one row as the sum of two float16, `half_row` of each, and the squared norm of that. One warp a row.
/// \param mean   d
/// \param rows   n x 2 x half_row, written
/// \param norms  n, written
template <class T>
__global__ void split_kernel(RawVectors vectors, bool normalized, const float* mean, const SpaceInfo* info,
                             __half* rows, int half_row, u32* norms) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (i >= vectors.n) return;
    const T* row = raw_row<T>(vectors, i);
    const RowScale scale = scale_of_row(row, vectors.d, normalized, info);
    __half* high = rows + i * 2 * half_row;
    float norm = 0;
    for (int c = lane_id(); c < half_row; c += kWarp) {
        const float x = c < vectors.d ? float(row[c]) * scale.of_row - mean[c] * scale.of_mean : 0.0f;
        const __half h = __float2half(x), l = __float2half(x - __half2float(h));
        high[c] = h;
        high[half_row + c] = l;
        const float sum = __half2float(h) + __half2float(l);
        norm += sum * sum;
    }
    norm = warp_sum(norm);
    if (lane_id() == 0) norms[i] = __float_as_uint(norm);
}

template <class T>
void find_mean(const RawVectors& vectors, const Traits& traits, float* mean, cudaStream_t stream) {
    centre_kernel<T><<<blocks_for(vectors.d, kWarp), kCentreWarps * kWarp, 0, stream>>>(vectors, traits.centre, mean);
    GNND_LAUNCHED("centre_kernel");
}

template <class T>
void scale_and_pack(const RawVectors& vectors, const Traits& traits, const VectorForm& form, std::uint8_t* rows,
                    u32* bias, float* errors, float* mean, SpaceInfo* info, cudaStream_t stream) {
    scale_kernel<<<1, kScaleThreads, 0, stream>>>(info, mean, vectors.d, traits, form.packed == PackedType::f16);
    GNND_LAUNCHED("scale_kernel");
    if (form.codes)
        return pack_codes(vectors, {mean, info, traits.normalized, traits.degree}, rows, form.row_bytes, bias, errors,
                          mean + 2 * vectors.d, stream);
    visit(form.packed, [&](auto packed) {
        pack_kernel<T, packed.value><<<blocks_for(vectors.n, kWarps), kWarps * kWarp, 0, stream>>>(
            vectors, traits.normalized, mean, info, rows, form.row_bytes, bias);
        GNND_LAUNCHED("pack_kernel");
    });
}

}  // namespace

void split_space(const RawVectors& vectors, Metric metric, const SpaceInfo* info, std::uint8_t* rows, int row_bytes,
                 std::uint32_t* norms, float* mean, cudaStream_t stream) {
    const Traits traits = traits_of(metric);
    visit_dtype(vectors.dtype, [&](auto component) {
        using T = decltype(component);
        find_mean<T>(vectors, traits, mean, stream);
        split_kernel<T><<<blocks_for(vectors.n, kWarps), kWarps * kWarp, 0, stream>>>(
            vectors, traits.normalized, mean, info, reinterpret_cast<__half*>(rows), row_bytes / 4, norms);
        GNND_LAUNCHED("split_kernel");
    });
}

RawVectors upload(const detail::Input& input, bool in_place, std::byte* copy, Resources& resources,
                  cudaStream_t stream) {
    const VectorView& first = input.vectors[0];
    RawVectors raw{static_cast<const std::byte*>(first.data), input.n(), input.d(), first.row_bytes(), input.dtype()};
    if (in_place) return raw;
    raw.data = copy;
    raw.stride = raw.d * std::int64_t(size_of(raw.dtype));
    for (const VectorView& set : input.vectors) {
        if (set.n == 0) continue;
        copy_in(copy, set.data, set.n, std::size_t(raw.stride), std::size_t(set.row_bytes()), resources, stream);
        copy += set.n * raw.stride;
    }
    return raw;
}

Points points_of(const RawVectors& raw, Metric metric, const VectorForm& form, const std::uint8_t* rows,
                 const u32* bias, detail::Pairs pairs) {
    const Traits traits = traits_of(metric);
    return {.rows = form.vectors_in_place ? reinterpret_cast<const std::uint8_t*>(raw.data) : rows,
            .n = raw.n,
            .row_bytes = form.row_bytes,
            .bias = traits.is_l2 ? bias : nullptr,
            .scale = traits.is_l2        ? -2
                     : traits.similarity ? -1
                                         : 1,
            .shift = form.shift,
            .pairs = pairs};
}

void prepare_space(const RawVectors& vectors, Metric metric, const VectorForm& form, std::uint8_t* rows, u32* bias,
                   float* mean, SpaceInfo* info, cudaStream_t stream) {
    const Traits traits = traits_of(metric);
    reset_kernel<<<1, 1, 0, stream>>>(info);
    GNND_LAUNCHED("reset_kernel");
    visit_dtype(vectors.dtype, [&](auto component) {
        using T = decltype(component);
        if (form.packed == PackedType::f16) {
            find_mean<T>(vectors, traits, mean, stream);
            scan_kernel<T><<<blocks_for(vectors.n, kWarps), kWarps * kWarp, 0, stream>>>(vectors, traits, mean, info);
            GNND_LAUNCHED("scan_kernel");
        }
        scale_and_pack<T>(vectors, traits, form, rows, bias, nullptr, mean, info, stream);
    });
}

void pack_again(const RawVectors& vectors, Metric metric, const VectorForm& form, std::uint8_t* rows, u32* bias,
                float* errors, float* mean, SpaceInfo* info, cudaStream_t stream) {
    const Traits traits = traits_of(metric);
    visit_dtype(vectors.dtype, [&](auto component) {
        using T = decltype(component);
        find_mean<T>(vectors, traits, mean, stream);
        scale_and_pack<T>(vectors, traits, form, rows, bias, errors, mean, info, stream);
    });
}

}  // namespace gnnd::cuda
