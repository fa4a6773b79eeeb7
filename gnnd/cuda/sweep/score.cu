// SPDX-License-Identifier: MIT
// From hits to candidates with exact distances, and from a graph to lists and back.
#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/sweep/bounds.h"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
/// With a warp each, so many rows leave most of a device without work.
constexpr u32 kFewRows = 1024;

/// Ids of a list that a warp looks for others among, which takes long in memory that is far.
struct ListPart {
    static constexpr int kIds = 128, kEach = 4;
    uint4 ids[kIds / kEach];

    /// All lanes. \param count  up to kIds
    __device__ void load(const u32* from, int count) {
        __syncwarp();
        for (int j = lane_id(); j < (count + kEach - 1) / kEach * kEach; j += kWarp)
            reinterpret_cast<u32*>(ids)[j] = j < count ? from[j] & ~kNewBit : kNoId;
        __syncwarp();
    }
    /// \param id  of the lane
    __device__ bool has(u32 id, int count) const {
        bool there = false;
        for (int j = 0; j < (count + kEach - 1) / kEach; ++j) {
            const uint4 some = ids[j];
            there |= some.x == id || some.y == id || some.z == id || some.w == id;
        }
        return there;
    }
};

/// One thread of a row that is not among them.
__device__ void add_overflowed(const ScoreArgs& args, u32 i) {
    args.is_overflowed[i] = 1;
    args.overflowed[atomicAdd(args.overflows, 1u)] = i;
}

/// A warp a row; of few rows, for which the device would have little to do, all warps of a block.
/// \param sharing  warps that share a row, and take its hits in turn: 1 or kWarps
template <class T, class M>
__global__ void __launch_bounds__(kThreads) score_kernel(RawVectors vectors, ScoreArgs args, int sharing) {
    const u32 warp = blockIdx.x * kWarps + threadIdx.x / kWarp, i = warp / u32(sharing);
    if (i >= args.count) return;
    const int turn = int(warp % u32(sharing)) * kWarp;
    const u32 offered = args.hits.counts[i];
    if (offered == 0) return;
    const int count = min(int(offered), args.hits.capacity), length = args.lists.length;
    if (offered > u32(count) && turn + lane_id() == 0 && args.is_overflowed[i] == 0) add_overflowed(args, i);
    const u32* ids = args.lists.ids + std::int64_t(i) * length;
    __shared__ ListPart parts[kWarps];
    ListPart& list = parts[threadIdx.x / kWarp];
    u64* hits = args.hits.entries + std::int64_t(i) * args.hits.capacity;
    const T* row = raw_row<T>(vectors, args.objects != nullptr ? args.objects[i] : i);
    constexpr int kAtOnce = 4;
    __shared__ u32 unknown_ids[kWarps][kWarp];
    u32* const unknown = unknown_ids[threadIdx.x / kWarp];
    for (int first = turn; first < count; first += sharing * kWarp) {
        const bool real = first + lane_id() < count;
        const u32 id = real ? id_of(hits[first + lane_id()]) : kNoId;
        bool known = !real;
        for (int begin = 0; begin < length; begin += ListPart::kIds) {
            const int there = min(ListPart::kIds, length - begin);
            if (first == turn || length > ListPart::kIds) list.load(ids + begin, there);
            known |= list.has(id, there);
        }
        // Those that are left, close together, and behind them one of them again.
        const u32 left = __ballot_sync(kAllLanes, !known);
        u64 candidate = pack(INFINITY, kNoId);
        if (left != 0) {
            unknown[lane_id()] = __shfl_sync(kAllLanes, id, __ffs(left) - 1);
            __syncwarp();
            if (!known) unknown[rank_in(left)] = id;
            __syncwarp();
            for (int at = 0; at < __popc(left); at += kAtOnce) {
                float distances[kAtOnce];
                exact_several<T, M>(
                    distances, row, [&](int j) { return raw_row<T>(vectors, unknown[at + j]); }, vectors.d);
#pragma unroll
                for (int j = 0; j < kAtOnce; ++j)
                    if (!known && rank_in(left) == at + j)
                        candidate = pack(M::similarity ? -distances[j] : distances[j], id);
            }
            __syncwarp();
        }
        if (real) hits[first + lane_id()] = candidate;
    }
}

__global__ void short_lists_kernel(ScoreArgs args, const float* ceilings) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= args.count || args.is_overflowed[i] != 0) return;
    const u32 object = args.objects != nullptr ? args.objects[i] : i;
    if (args.lists.distances[(std::int64_t(i) + 1) * args.lists.length - 1] >= ceilings[object])
        add_overflowed(args, i);
}

__global__ void turn_graph_kernel(Lists lists, std::int64_t n, float sign, bool bounds) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n * lists.length) return;
    const float distance = lists.distances[i] * sign;
    lists.distances[i] = distance;
    lists.ids[i] &= ~kNewBit;
    if (bounds && i % lists.length == lists.length - 1) lists.bounds[i / lists.length] = distance;
}

/// A warp a row.
/// A factor makes the norm of a row 1.
/// \param factors  n, written
template <class T>
__global__ void factors_kernel(RawVectors vectors, float* factors) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (i >= vectors.n) return;
    const T* row = raw_row<T>(vectors, i);
    float square = 0;
    for (std::int64_t c = lane_id(); c < vectors.d; c += kWarp) {
        const float x = float(row[c]);
        square += x * x;
    }
    square = warp_sum(square);
    if (lane_id() == 0) factors[i] = 1 / sqrtf(square);
}

}  // namespace

void score_hits(const SweepSpace& space, const ScoreArgs& args, cudaStream_t stream) {
    visit_dtype(space.raw.dtype, [&](auto component) {
        visit(space.metric, [&]<class M>(M) {
            const int sharing = args.count <= kFewRows ? kWarps : 1;
            score_kernel<decltype(component), M>
                <<<blocks_for(args.count, kWarps / sharing), kThreads, 0, stream>>>(space.raw, args, sharing);
            GNND_LAUNCHED("score_kernel");
        });
    });
}

void find_short_lists(const ScoreArgs& args, const float* ceilings, cudaStream_t stream) {
    short_lists_kernel<<<blocks_for(args.count, kThreads), kThreads, 0, stream>>>(args, ceilings);
    GNND_LAUNCHED("short_lists_kernel");
}

void open_graph(Metric metric, const Lists& lists, std::int64_t n, cudaStream_t stream) {
    turn_graph_kernel<<<blocks_for(n * lists.length, kThreads), kThreads, 0, stream>>>(
        lists, n, is_similarity(metric) ? -1.0f : 1.0f, true);
    GNND_LAUNCHED("turn_graph_kernel");
}

void close_graph(Metric metric, const Lists& lists, std::int64_t n, cudaStream_t stream) {
    turn_graph_kernel<<<blocks_for(n * lists.length, kThreads), kThreads, 0, stream>>>(
        lists, n, is_similarity(metric) ? -1.0f : 1.0f, false);
    GNND_LAUNCHED("turn_graph_kernel");
}

void make_factors(const SweepSpace& space, float* factors, cudaStream_t stream) {
    visit_dtype(space.raw.dtype, [&](auto component) {
        factors_kernel<decltype(component)>
            <<<blocks_for(space.raw.n, kWarps), kThreads, 0, stream>>>(space.raw, factors);
        GNND_LAUNCHED("factors_kernel");
    });
}

}  // namespace gnnd::cuda
