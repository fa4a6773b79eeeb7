// SPDX-License-Identifier: MIT
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/row_scale.cuh"
#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/code_scale.cuh"
#include "gnnd/cuda/space/codes.h"
#include "gnnd/cuda/space/row_error.h"

namespace gnnd::cuda {
namespace {

constexpr int kWarps = 8, kScaleThreads = 512;

__device__ float scale_to_try(const CodeSource& source, int i) {
    return code_scale(source.normalized ? 1.0f : __uint_as_float(source.info->largest), source.degree, i);
}

/// A component as it is packed. Where the row is not divided by its norm the mean is taken off first, so that what is
/// rounded is no larger than the component that is left.
__device__ float scaled(float x, float mean, const RowScale& scale, bool normalized) {
    return normalized ? x * scale.of_row - mean * scale.of_mean : (x - mean) * scale.of_row;
}

/// Squared errors of some rows with each scale, in the vectors' own units. One warp a row, one lane a scale.
/// \param errors  kCodeRows x kCodeScales, written
template <class T>
__global__ void code_errors_kernel(RawVectors vectors, CodeSource source, float* errors) {
    const int r = blockIdx.x * kWarps + threadIdx.x / kWarp;
    const T* row = raw_row<T>(vectors, vectors.n * r / kCodeRows);
    const RowScale scale = scale_of_row(row, vectors.d, source.normalized, source.info);
    const float step = scale_to_try(source, lane_id());
    float sum = 0;
    for (std::int64_t first = 0; first < vectors.d; first += kWarp) {
        const std::int64_t c = first + lane_id();
        const float mine = c < vectors.d ? scaled(float(row[c]), source.mean[c], scale, source.normalized) : 0.0f;
#pragma unroll 8
        for (int lane = 0; lane < kWarp; ++lane) {
            const float x = __shfl_sync(kAllLanes, mine, lane), error = x - code_of(x * step) / step;
            sum += error * error;
        }
    }
    errors[r * kCodeScales + lane_id()] = sum;
}

/// Chooses the scale with the least error, of equal ones the first. One block; sums in the same order always.
/// \param errors  kCodeRows x kCodeScales
__global__ void __launch_bounds__(kScaleThreads) code_scale_kernel(CodeSource source, const float* errors) {
    constexpr int kParts = kScaleThreads / kCodeScales;
    __shared__ float parts[kParts][kCodeScales];
    const int i = threadIdx.x % kCodeScales, part = threadIdx.x / kCodeScales;
    float sum = 0;
    for (int r = part; r < kCodeRows; r += kParts) sum += errors[r * kCodeScales + i];
    parts[part][i] = sum;
    __syncthreads();
    if (part != 0) return;
    for (int p = 1; p < kParts; ++p) sum += parts[p][i];
    if (is_best_scale(sum)) take_step(step_of(sum, scale_to_try(source, i), source.degree), source.degree, source.info);
}

/// What the row itself differs from its code by at most, where floats differ so much: each component is rounded twice
/// before it is a code, a norm that became 1 has an error, too, and the sum of squares is one of float32.
__device__ float bound_of_error(float square, float norm, const CodeSource& source) {
    const float error = sqrtf(square), rounding = 0x1p-21f * (norm + error);
    return error * (1 + 0x1p-12f) + rounding + (source.normalized ? kNormalizing * source.info->scale : 0.0f);
}

/// Writes one row and its bias. One warp a row, four components a lane at a time.
/// \param rows    n x row_bytes, written
/// \param bias    n, written
/// \param errors  n, written; null: not
template <class T>
__global__ void pack_codes_kernel(RawVectors vectors, CodeSource source, std::uint8_t* rows, int row_bytes, u32* bias,
                                  float* errors) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (i >= vectors.n) return;
    const T* row = raw_row<T>(vectors, i);
    const RowScale scale = scale_of_row(row, vectors.d, source.normalized, source.info);
    u32* packed = reinterpret_cast<u32*>(rows + i * row_bytes);
    int norm = 0;
    float square = 0;
    for (int word = lane_id(); word < row_bytes / 4; word += kWarp) {
        u32 codes = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int c = word * 4 + j;
            const float x = c < vectors.d ? scaled(float(row[c]), source.mean[c], scale, source.normalized) : 0.0f;
            const float code = code_of(x);
            codes |= u32(int(code) & 0xff) << 8 * j;
            norm += int(code) * int(code);
            square += (x - code) * (x - code);
        }
        packed[word] = codes;
    }
    norm = warp_sum(norm);
    if (lane_id() == 0) bias[i] = u32(norm);
    if (errors == nullptr) return;
    const float error = bound_of_error(warp_sum(square), sqrtf(float(norm)), source);
    if (lane_id() != 0) return;
    errors[i] = error;
    if (__float_as_uint(error) > source.info->largest_error)  // most rows need not ask
        atomicMax(&source.info->largest_error, __float_as_uint(error));
}

__global__ void count_coarse_kernel(Candidates candidates, int take, std::int64_t n, SpaceInfo* info) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    float farthest = 0;
    for (int j = 0; i < n && j < take; ++j)
        farthest = fmaxf(farthest, distance_of(candidates.entries[i * candidates.capacity + j]));
    const u32 coarse = __ballot_sync(kAllLanes, i < n && farthest < kCoarse * 2 * info->code_error);
    if (lane_id() == 0 && coarse != 0) atomicAdd(&info->coarse, u32(__popc(coarse)));
}

}  // namespace

void pack_codes(const RawVectors& vectors, const CodeSource& source, std::uint8_t* rows, int row_bytes, u32* bias,
                float* errors, float* work, cudaStream_t stream) {
    visit_dtype(vectors.dtype, [&](auto component) {
        using T = decltype(component);
        code_errors_kernel<T><<<kCodeRows / kWarps, kWarps * kWarp, 0, stream>>>(vectors, source, work);
        GNND_LAUNCHED("code_errors_kernel");
        code_scale_kernel<<<1, kScaleThreads, 0, stream>>>(source, work);
        GNND_LAUNCHED("code_scale_kernel");
        pack_codes_kernel<T><<<blocks_for(vectors.n, kWarps), kWarps * kWarp, 0, stream>>>(vectors, source, rows,
                                                                                           row_bytes, bias, errors);
        GNND_LAUNCHED("pack_codes_kernel");
    });
}

void count_coarse(const Candidates& candidates, int take, std::int64_t n, SpaceInfo* info, cudaStream_t stream) {
    constexpr int kThreads = 256;
    GNND_CUDA(cudaMemsetAsync(&info->coarse, 0, sizeof(info->coarse), stream));
    count_coarse_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(candidates, take, n, info);
    GNND_LAUNCHED("count_coarse_kernel");
}

}  // namespace gnnd::cuda
