// SPDX-License-Identifier: MIT
#include <string>

#include "benchs/generate_on_device.h"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/error.h"

namespace gnnd::benchs {
namespace {

constexpr int kThreads = 256;
/// Rows of the manifold that a block makes at a time: each weight that is read serves so many.
constexpr int kTile = 16;

void require(bool ok, const char* name, std::int64_t value, const char* allowed) {
    if (ok) return;
    throw InvalidArgument(std::string("generate: ") + name + " is " + std::to_string(value) + ", allowed: " + allowed);
}

void require_range(std::int64_t d, std::int64_t begin, std::int64_t count) {
    require(d >= 1, "d", d, "at least 1");
    require(begin >= 0, "begin", begin, "at least 0");
    require(count >= 0 && count <= INT32_MAX, "count", count, "0 to 2^31 - 1");
}

/// Device memory that is given back in the stream's order, also when a launch fails.
class StreamFloats {
  public:
    StreamFloats(std::int64_t count, cudaStream_t stream) : stream_(stream) {
        GNND_CUDA(cudaMallocAsync(&data_, std::size_t(count) * sizeof(float), stream));
    }
    ~StreamFloats() { cuda::ignore(cudaFreeAsync(data_, stream_)); }
    StreamFloats(const StreamFloats&) = delete;
    StreamFloats& operator=(const StreamFloats&) = delete;
    float* data() const { return data_; }

  private:
    float* data_ = nullptr;
    cudaStream_t stream_;
};

/// A warp makes a row.
__global__ void __launch_bounds__(kThreads)
    make_mix(Mix mix, std::int64_t begin, std::int64_t count, std::uint8_t* __restrict__ out) {
    const std::int64_t row = (std::int64_t(blockIdx.x) * kThreads + threadIdx.x) / cuda::kWarp;
    if (row >= count) return;
    const Mix::Recipe recipe = mix.recipe(begin + row);
    for (std::int64_t c = threadIdx.x % cuda::kWarp; c < mix.d; c += cuda::kWarp)
        out[row * mix.d + c] = mix.value(recipe, c);
}

__global__ void __launch_bounds__(kThreads) make_parameters(Manifold manifold, float* __restrict__ parameters) {
    const std::int64_t at = std::int64_t(blockIdx.x) * kThreads + threadIdx.x;
    if (at < manifold.parameters()) parameters[at] = manifold.parameter(at);
}

/// A block makes kTile rows: their features once in shared memory, then a thread a component of all of them.
__global__ void __launch_bounds__(kThreads)
    make_manifold(Manifold manifold, const float* __restrict__ parameters, std::int64_t begin, std::int64_t count,
                  float* __restrict__ out) {
    constexpr int kFeatures = Manifold::kFeatures;
    __shared__ float latent[kTile * Manifold::kMaxM];
    __shared__ __align__(16) float features[kFeatures][kTile];
    const std::int64_t first = std::int64_t(blockIdx.x) * kTile;
    const int m = manifold.m, tid = int(threadIdx.x);

    for (int at = tid; at < kTile * m; at += kThreads) latent[at] = manifold.latent(begin + first + at / m, at % m);
    __syncthreads();
    for (int at = tid; at < kTile * kFeatures; at += kThreads) {
        const int r = at / kFeatures, j = at % kFeatures;
        features[j][r] = manifold.feature(parameters, latent + r * m, j);
    }
    __syncthreads();

    const float* weights = parameters + manifold.weights_at();
    for (std::int64_t c = tid; c < manifold.d; c += kThreads) {
        float x[kTile] = {};
        for (int j = 0; j < kFeatures; ++j) {
            const float weight = weights[j * manifold.d + c];
#pragma unroll
            for (int r = 0; r < kTile; ++r) x[r] += weight * features[j][r];
        }
#pragma unroll
        for (int r = 0; r < kTile; ++r) {
            if (first + r < count) out[(first + r) * manifold.d + c] = x[r];
        }
    }
}

}  // namespace

void generate(const Mix& mix, std::int64_t begin, std::int64_t count, std::uint8_t* out, cudaStream_t stream) {
    require_range(mix.d, begin, count);
    require(mix.n0 > Mix::kNearest && mix.n0 <= INT32_MAX, "n0", mix.n0, "11 to 2^31 - 1");
    require(mix.k >= Mix::kNearest, "k", mix.k, "at least 10");
    if (count == 0) return;
    make_mix<<<cuda::blocks_for(count, kThreads / cuda::kWarp), kThreads, 0, stream>>>(mix, begin, count, out);
    GNND_LAUNCHED("make_mix");
}

void generate(const Manifold& manifold, std::int64_t begin, std::int64_t count, float* out, cudaStream_t stream) {
    require_range(manifold.d, begin, count);
    require(manifold.m >= 1 && manifold.m <= Manifold::kMaxM, "m", manifold.m, "1 to 64");
    if (count == 0) return;
    const StreamFloats parameters(manifold.parameters(), stream);
    make_parameters<<<cuda::blocks_for(manifold.parameters(), kThreads), kThreads, 0, stream>>>(manifold,
                                                                                                parameters.data());
    GNND_LAUNCHED("make_parameters");
    make_manifold<<<cuda::blocks_for(count, kTile), kThreads, 0, stream>>>(manifold, parameters.data(), begin, count,
                                                                           out);
    GNND_LAUNCHED("make_manifold");
}

}  // namespace gnnd::benchs
