// SPDX-License-Identifier: MIT
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/memory/fetch.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/code_scale.cuh"
#include "gnnd/cuda/space/projection.h"
#include "gnnd/cuda/space/row_error.h"
#include "gnnd/detail/orthonormal.h"

namespace gnnd::cuda {
namespace {

constexpr int kSample = 2048;   ///< rows that the directions come from
constexpr int kRowsAtOnce = 8;  ///< of the sample, by a block
constexpr int kSampleBlocks = kSample / kRowsAtOnce;
constexpr int kPartComponents = 32;
constexpr int kGramTile = 16;

/// From products with the directions to codes.
struct ProjectionStep {
    CodeStep code;
    float longest;  ///< products make a distance so many times as long at most
    float kept;     ///< of the sampled rows' squared norms, this share
};

/// The parts of a projection that are kept after it was made.
struct Kept {
    __half* directions;  ///< kComponents x d, rows that tensor cores multiply
    ProjectionStep* step;
    std::int64_t bytes;

    Kept(std::byte* memory, std::int64_t row_bytes) {
        Layout layout;
        directions = reinterpret_cast<__half*>(memory + layout.take(row_bytes * kComponents).offset);
        step = reinterpret_cast<ProjectionStep*>(memory + layout.take(sizeof(ProjectionStep)).offset);
        bytes = std::int64_t(layout.end_);
    }
};

/// The arrays that finding it and projecting work in.
struct Work {
    std::uint8_t* codes;  ///< n x kComponents
    float* spread;        ///< d x kComponents: combinations of sampled rows
    float* basis;         ///< d x kComponents: orthonormal columns, as float16 has them
    float* sampled;       ///< sample x kComponents: sampled rows in the basis
    float2* squares;      ///< sample blocks: see sample_kernel()
    double* gram;         ///< kComponents x kComponents
    float* turn;          ///< the same: what makes columns orthonormal
    std::int64_t bytes;

    Work(std::byte* memory, std::int64_t n, std::int64_t row_bytes) {
        Layout layout;
        const std::int64_t d = row_bytes / 2;
        const auto take = [&]<class T>(T*& array, std::int64_t count) {
            array = reinterpret_cast<T*>(memory + layout.take(count * std::int64_t(sizeof(T))).offset);
        };
        take(codes, n * kComponents);
        take(spread, d * kComponents);
        take(basis, d * kComponents);
        take(sampled, std::int64_t(kSample) * kComponents);
        take(squares, kSampleBlocks);
        take(gram, std::int64_t(kComponents) * kComponents);
        take(turn, std::int64_t(kComponents) * kComponents);
        bytes = std::int64_t(layout.end_);
    }
};

__device__ const __half* sampled_row(const Points& halves, int r) {
    return reinterpret_cast<const __half*>(halves.row(u32(halves.n * r / kSample)));
}

/// spread = sampled rows' transpose x sampled, or x random signs where `sampled` is null. A block has 32 components of
/// the rows, a thread 16 columns of one of them.
/// \param sampled  kSample x kComponents
/// \param spread   d x kComponents, written
__global__ void __launch_bounds__(256) combine_kernel(Points halves, const float* sampled, u32 seed, float* spread) {
    constexpr int kRows = 32, kColumns = 16;
    static_assert(kPartComponents * kComponents / kColumns == 256);
    __shared__ float part[kRows][kPartComponents + 1];
    __shared__ float other[kRows][kComponents];
    const int d = halves.row_bytes / 2, first = int(blockIdx.x) * kPartComponents;
    const int component = threadIdx.x % kPartComponents, column = threadIdx.x / kPartComponents * kColumns;
    float sums[kColumns] = {};
    for (int begin = 0; begin < kSample; begin += kRows) {
        for (int i = threadIdx.x; i < kRows * kPartComponents; i += blockDim.x) {
            const int r = i / kPartComponents, c = first + i % kPartComponents;
            part[r][i % kPartComponents] = c < d ? __half2float(sampled_row(halves, begin + r)[c]) : 0.0f;
        }
        for (int i = threadIdx.x; i < kRows * kComponents; i += blockDim.x) {
            const int at = begin * kComponents + i;
            other[i / kComponents][i % kComponents] =
                sampled != nullptr ? sampled[at] : (mix(seed + u32(at)) & 1 ? 1.0f : -1.0f);
        }
        __syncthreads();
        for (int r = 0; r < kRows; ++r)
#pragma unroll
            for (int j = 0; j < kColumns; ++j) sums[j] += part[r][component] * other[r][column + j];
        __syncthreads();
    }
    if (first + component < d)
        for (int j = 0; j < kColumns; ++j) spread[std::int64_t(first + component) * kComponents + column + j] = sums[j];
}

/// gram = the transpose of a d x kComponents matrix x the matrix. A block has a tile of it, a thread an element.
/// \param matrix  d x kComponents
/// \param gram    kComponents x kComponents, written
__global__ void gram_kernel(const float* matrix, int d, double* gram) {
    const int i = int(blockIdx.y) * kGramTile + threadIdx.y, j = int(blockIdx.x) * kGramTile + threadIdx.x;
    double sum = 0;
    for (int c = 0; c < d; ++c)
        sum += double(matrix[std::int64_t(c) * kComponents + i]) * double(matrix[std::int64_t(c) * kComponents + j]);
    gram[i * kComponents + j] = sum;
}

/// basis = spread x turn, rounded to float16, and its transpose. A block a row.
/// \param spread, basis  d x kComponents, the latter written
/// \param turn           kComponents x kComponents
/// \param directions     kComponents x d, written
__global__ void turn_kernel(const float* spread, const float* turn, int d, float* basis, __half* directions) {
    __shared__ float row[kComponents];
    const int c = int(blockIdx.x), j = threadIdx.x;
    row[j] = spread[std::int64_t(c) * kComponents + j];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i <= j; ++i) sum += row[i] * turn[i * kComponents + j];
    const __half rounded = __float2half(sum);
    basis[std::int64_t(c) * kComponents + j] = __half2float(rounded);
    directions[std::int64_t(j) * d + c] = rounded;
}

/// sampled = sampled rows x basis. A block has kRowsAtOnce of them.
/// \param basis    d x kComponents
/// \param sampled  kSample x kComponents, written
/// \param squares  kSampleBlocks: of a block's rows the squared norms, projected and as they are, written
__global__ void __launch_bounds__(kComponents)
    sample_kernel(Points halves, const float* basis, float* sampled, float2* squares) {
    constexpr int kWarps = kComponents / kWarp;
    __shared__ float kept_by[kWarps], all_by[kWarps];
    const int d = halves.row_bytes / 2, first = int(blockIdx.x) * kRowsAtOnce, j = threadIdx.x;
    float sums[kRowsAtOnce] = {}, kept = 0, all = 0;
    for (int c = 0; c < d; ++c) {
        const float direction = basis[std::int64_t(c) * kComponents + j];
#pragma unroll
        for (int r = 0; r < kRowsAtOnce; ++r) sums[r] += __half2float(sampled_row(halves, first + r)[c]) * direction;
    }
    for (int r = 0; r < kRowsAtOnce; ++r) {
        sampled[(first + r) * kComponents + j] = sums[r];
        kept += sums[r] * sums[r];
        for (int c = j; c < d; c += kComponents) {
            const float x = __half2float(sampled_row(halves, first + r)[c]);
            all += x * x;
        }
    }
    kept = warp_sum(kept);
    all = warp_sum(all);
    if (lane_id() == 0) kept_by[j / kWarp] = kept, all_by[j / kWarp] = all;
    __syncthreads();
    if (j != 0) return;
    for (int w = 1; w < kWarps; ++w) {
        kept += kept_by[w];
        all += all_by[w];
    }
    squares[blockIdx.x] = {kept, all};
}

/// Directions that are rounded are not quite orthonormal. The largest eigenvalue of their Gram matrix, which is at most
/// the largest sum of magnitudes in one of its rows, is the square of what a distance may grow by. A thread a row.
/// \param gram     kComponents x kComponents, of the basis
/// \param squares  kSampleBlocks, of sample_kernel()
__global__ void __launch_bounds__(kComponents)
    judge_kernel(const double* gram, const float2* squares, ProjectionStep* step) {
    __shared__ float sums[kComponents];
    double sum = 0;
    for (int j = 0; j < kComponents; ++j) sum += fabs(gram[j * kComponents + threadIdx.x]);
    sums[threadIdx.x] = float(sum) * (1 + 0x1p-20f);
    __syncthreads();
    if (threadIdx.x != 0) return;
    float largest = 1, kept = 0, all = 0;
    for (const float of_row : sums) largest = fmaxf(largest, of_row);
#pragma unroll 16
    for (int block = 0; block < kSampleBlocks; ++block) {
        kept += squares[block].x;
        all += squares[block].y;
    }
    step->longest = sqrtf(largest) * (1 + 0x1p-20f);
    step->kept = all > 0 ? kept / all : 1;
}

/// The step of least squared error of the sampled rows, as codes of all components have it (codes.cu). One block, a
/// warp some of the rows, a lane a scale.
/// \param sampled  kSample x kComponents
__global__ void __launch_bounds__(1024) choose_step_kernel(const float* sampled, CodeStep* step) {
    constexpr int kWarps = 1024 / kWarp, kValues = kSample * kComponents;
    __shared__ float parts[kWarps][kWarp];
    const int lane = lane_id(), warp = threadIdx.x / kWarp;
    float largest = 0;
    for (int i = threadIdx.x; i < kValues; i += blockDim.x) largest = fmaxf(largest, fabsf(sampled[i]));
    parts[warp][lane] = largest;
    __syncthreads();
    for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, parts[i][lane]);
    for (int step = kWarp / 2; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, step));
    __syncthreads();
    constexpr int kDegree = 2;  // squared distances
    const float scale = code_scale(largest, kDegree, lane);
    float sum = 0;
    for (int r = warp; r < kCodeRows; r += kWarps) {
        const float* row = sampled + r * (kSample / kCodeRows) * kComponents;
#pragma unroll 4
        for (int j = 0; j < kComponents; ++j) {
            const float error = row[j] - code_of(row[j] * scale) / scale;
            sum += error * error;
        }
    }
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp != 0) return;
    for (int w = 1; w < kWarps; ++w) sum += parts[w][lane];
    if (is_best_scale(sum)) *step = step_of(sum, scale, kDegree);
}

constexpr int kProjectThreads = 2 * kBlockRows;

/// What a row's projection differs from its code by at most, both in the code's units: `square` by which the sums that
/// were computed differ from it, what tensor cores cut of each of these sums (sweep/bounds.h), whose directions have a
/// norm of `longest` at most, and what the row itself lost when it became float16.
/// \param norm  of the row
__device__ float bound_of_error(float square, float norm, const HalfError& half, const ProjectionStep& step,
                                bool normalized, float whole_scale) {
    const float summing = half.summing() * sqrtf(float(kComponents));
    const float lost = ((summing + half.rounding) * norm + half.subnormal) * step.longest * step.code.scale;
    return sqrtf(square) * (1 + 0x1p-12f) + lost * (1 + 0x1p-12f) + (normalized ? kNormalizing * whole_scale : 0.0f);
}

/// The codes of kBlockRows rows, their norms and errors.
/// \param codes   n x kComponents, written
/// \param bias    n, changed
/// \param errors  n, written
__global__ void __launch_bounds__(kProjectThreads)
    project_kernel(Points halves, HalfError half_error, bool normalized, Points directions,
                   const ProjectionStep* chosen, std::uint8_t* codes, u32* bias, float* errors, SpaceInfo* info) {
    using Arithmetic = TensorProducts<PackedType::f16>;
    constexpr int kTiles = kComponents / kTileColumns;
    __shared__ __align__(128) std::uint8_t tile[(kBlockRows + kComponents) * kTileBytes];
    __shared__ u32 ids[kBlockRows + kComponents];
    const std::int64_t begin = std::int64_t(blockIdx.x) * kBlockRows;
    const int rows = int(min(std::int64_t(kBlockRows), halves.n - begin));
    for (int i = threadIdx.x; i < kBlockRows + kComponents; i += kProjectThreads)
        ids[i] = i < kBlockRows ? u32(begin) + u32(min(i, rows - 1)) : u32(i - kBlockRows);
    __syncthreads();
    const int stripe = threadIdx.x / kWarp * kTileRows;
    float sums[kTiles][4] = {};
    multiply_rows<Arithmetic, kTiles>(
        sums, tile, stripe, kBlockRows, halves,
        [&](int k, std::uint8_t* stage) {
            load_rows<kProjectThreads, kBlockRows>(stage, 0, ids, rows, kBlockRows, halves, k);
            load_rows<kProjectThreads, kComponents>(stage, kBlockRows, ids + kBlockRows, kComponents, kComponents,
                                                    directions, k);
            commit_loads();
        },
        [](int) { return true; });
    const ProjectionStep step = *chosen;
    int norms[2] = {0, 0};
    float squares[2] = {0, 0};
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float x = sums[t][half * 2] * step.code.scale, y = sums[t][half * 2 + 1] * step.code.scale;
            const int low = int(code_of(x)), high = int(code_of(y));
            norms[half] += low * low + high * high;
            squares[half] += (x - float(low)) * (x - float(low)) + (y - float(high)) * (y - float(high));
            const int row = stripe + lane_id() / 4 + half * 8, column = t * kTileColumns + lane_id() % 4 * 2;
            if (row < rows)
                *reinterpret_cast<std::uint16_t*>(codes + (begin + row) * kComponents + column) =
                    std::uint16_t((low & 0xff) | (high & 0xff) << 8);
        }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        for (const int lanes : {1, 2}) {
            norms[half] += __shfl_xor_sync(kAllLanes, norms[half], lanes);
            squares[half] += __shfl_xor_sync(kAllLanes, squares[half], lanes);
        }
        const int row = stripe + lane_id() / 4 + half * 8;
        if (lane_id() % 4 != 0 || row >= rows) continue;
        const float norm = sqrtf(__uint_as_float(bias[begin + row]));
        const float error = bound_of_error(squares[half], norm, half_error, step, normalized, info->scale);
        bias[begin + row] = u32(norms[half]);
        errors[begin + row] = error;
        if (__float_as_uint(error) > info->largest_error)  // most rows need not ask
            atomicMax(&info->largest_error, __float_as_uint(error));
    }
}

__global__ void take_step_kernel(const ProjectionStep* step, SpaceInfo* info) {
    take_step(step->code, 2, info, step->longest);
}

}  // namespace

std::int64_t projection_bytes(std::int64_t row_bytes) {
    return Kept(nullptr, row_bytes).bytes;
}

std::int64_t projection_work_bytes(std::int64_t n, std::int64_t row_bytes) {
    return Work(nullptr, n, row_bytes).bytes;
}

float find_projection(const Points& halves, u32 seed, std::byte* projection, std::byte* memory, cudaStream_t stream) {
    const Kept kept(projection, halves.row_bytes);
    const Work work(memory, halves.n, halves.row_bytes);
    const int d = halves.row_bytes / 2;
    PinnedArray<double, kComponents * kComponents> gram;
    PinnedArray<float, kComponents * kComponents> turn;
    const Drain drain(stream);
    const auto make_gram = [&](const float* matrix) {
        const dim3 tiles(kComponents / kGramTile, kComponents / kGramTile), threads(kGramTile, kGramTile);
        gram_kernel<<<tiles, threads, 0, stream>>>(matrix, d, work.gram);
        GNND_LAUNCHED("gram_kernel");
    };
    const auto find_basis = [&](const float* sampled) {
        combine_kernel<<<blocks_for(d, kPartComponents), 256, 0, stream>>>(halves, sampled, seed, work.spread);
        GNND_LAUNCHED("combine_kernel");
        make_gram(work.spread);
        constexpr std::size_t kElements = std::size_t(kComponents) * kComponents;
        GNND_CUDA(cudaMemcpyAsync(&gram[0], work.gram, kElements * sizeof(double), cudaMemcpyDeviceToHost, stream));
        GNND_CUDA(cudaStreamSynchronize(stream));
        detail::orthonormalize(&gram[0], kComponents, &turn[0]);
        GNND_CUDA(cudaMemcpyAsync(work.turn, &turn[0], kElements * sizeof(float), cudaMemcpyHostToDevice, stream));
        turn_kernel<<<unsigned(d), kComponents, 0, stream>>>(work.spread, work.turn, d, work.basis, kept.directions);
        GNND_LAUNCHED("turn_kernel");
        sample_kernel<<<kSampleBlocks, kComponents, 0, stream>>>(halves, work.basis, work.sampled, work.squares);
        GNND_LAUNCHED("sample_kernel");
    };
    find_basis(nullptr);
    find_basis(work.sampled);
    make_gram(work.basis);
    judge_kernel<<<1, kComponents, 0, stream>>>(work.gram, work.squares, kept.step);
    GNND_LAUNCHED("judge_kernel");
    choose_step_kernel<<<1, 1024, 0, stream>>>(work.sampled, &kept.step->code);
    GNND_LAUNCHED("choose_step_kernel");
    return fetch(&kept.step->kept, stream);
}

void project(const Points& halves, bool normalized, const std::byte* projection, std::uint8_t* rows, u32* bias,
             float* errors, SpaceInfo* info, std::byte* memory, cudaStream_t stream) {
    const Kept kept(const_cast<std::byte*>(projection), halves.row_bytes);
    const Work work(memory, halves.n, halves.row_bytes);
    Points directions = halves;
    directions.rows = reinterpret_cast<const std::uint8_t*>(kept.directions);
    directions.n = kComponents;
    take_step_kernel<<<1, 1, 0, stream>>>(kept.step, info);
    GNND_LAUNCHED("take_step_kernel");
    project_kernel<<<blocks_for(halves.n, kBlockRows), kProjectThreads, 0, stream>>>(
        halves, HalfError(halves.row_bytes / 2), normalized, directions, kept.step, work.codes, bias, errors, info);
    GNND_LAUNCHED("project_kernel");
    GNND_CUDA(cudaMemcpyAsync(rows, work.codes, std::size_t(halves.n) * kComponents, cudaMemcpyDeviceToDevice, stream));
}

}  // namespace gnnd::cuda
