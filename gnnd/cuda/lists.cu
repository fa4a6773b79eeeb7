// SPDX-License-Identifier: MIT
// The steps that see lists only, whatever the vectors are.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/apply_candidates.cuh"
#include "gnnd/cuda/init/fill_lists.cuh"
#include "gnnd/cuda/init/sort_node.cuh"
#include "gnnd/cuda/reverse.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/sample.cuh"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostSorting = 512;  ///< threads of a block that sorts a node
constexpr int kMaxSegments = (kMaxK + kSegmentLength - 1) / kSegmentLength;

/// A thread an owner; see allocate_offsets() of algorithm.h. offsets[owners] is 0 before.
/// \param counts   owners
/// \param offsets  owners + 1, written
__global__ void __launch_bounds__(kThreads)
    allocate_offsets_kernel(const u32* counts, u64* offsets, std::int64_t owners, const StopFlag* stop) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (stop != nullptr && stop->raised) return;
    const u32 count = i < owners ? counts[i] : 0;
    u64 before = count;
    for (int step = 1; step < kWarp; step *= 2) {
        const u64 lower = __shfl_up_sync(kAllLanes, before, step);
        if (lane_id() >= step) before += lower;
    }
    u64 begin = 0;
    if (lane_id() == kWarp - 1) begin = atomicAdd(&offsets[owners], before);
    begin = __shfl_sync(kAllLanes, begin, kWarp - 1);
    if (i < owners) offsets[i] = begin + before - count;
}

__global__ void clear_kernel(Lists lists, Candidates candidates, std::int64_t n) {
    const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
    const std::int64_t begin = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (std::int64_t i = begin; i < n * lists.length; i += step) {
        lists.ids[i] = kNoId;
        lists.distances[i] = INFINITY;
    }
    for (std::int64_t i = begin; i < n; i += step) {
        lists.bound(i) = INFINITY;
        candidates.counts[i] = 0;
    }
}

/// Beside the bound of each list the bias of its object. \param bias  n, or null
__global__ void pair_bounds_kernel(Lists lists, const u32* bias, std::int64_t n) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) lists.bounds[i * 2 + 1] = bias != nullptr ? __uint_as_float(bias[i]) : 0.0f;
}

/// Ids without the mark of NEW ones, -1 for none. \param ids  count
__global__ void make_ids_plain_kernel(u32* ids, std::int64_t count) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const u32 id = ids[i] & ~kNewBit;
    ids[i] = id == kNoId ? u32(-1) : id;
}

/// order[i] = i. \param order  n, written
__global__ void number_kernel(u32* order, std::int64_t n) {
    const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) order[i] = u32(i);
}

/// A warp a list. Shared memory: every warp's list and how many of each segment were found.
__global__ void split_kernel(Lists lists, std::int64_t n) {
    extern __shared__ u64 room[];
    const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp, length = lists.length;
    const std::int64_t object = std::int64_t(blockIdx.x) * warps + warp;
    if (object >= n) return;
    u64* row = room + warp * length;
    u32* found = reinterpret_cast<u32*>(room + warps * length) + warp * kMaxSegments;
    u32* ids = lists.ids + object * length;
    float* distances = lists.distances + object * length;
    for (int i = lane_id(); i < length; i += kWarp) row[i] = pack(INFINITY, kNoId);
    for (int i = lane_id(); i < kMaxSegments; i += kWarp) found[i] = 0;
    __syncwarp();
    for (int first = 0; first < length; first += kWarp) {
        const int i = first + lane_id();
        const u32 id = i < length ? ids[i] : kNoId;
        const bool real = id != kNoId;
        const int segment = real ? lists.segment_of(id & ~kNewBit) : kMaxSegments;
        const u32 same = __match_any_sync(kAllLanes, segment);
        const int rank = (real ? int(found[segment]) : 0) + rank_in(same);
        __syncwarp();
        if (real && rank_in(same) == 0) found[segment] += __popc(same);
        if (real && rank < lists.size_of(segment)) row[lists.place(rank, segment)] = pack(distances[i], id);
        __syncwarp();
    }
    for (int i = lane_id(); i < length; i += kWarp) {
        ids[i] = id_of(row[i]);
        distances[i] = distance_of(row[i]);
    }
}

/// phi(G) over the first k entries and the number of NEW entries, a warp some lists at a time, whose entries are all on
/// their way before the first is looked at.
__global__ void sum_up_kernel(Lists lists, int k, std::int64_t n, const StopFlag* stop, Counters* counters) {
    if (stop->raised) return;
    double phi = 0;
    u64 entries = 0, fresh = 0;
    constexpr int kAtOnce = 4;
    const std::int64_t warps = std::int64_t(gridDim.x) * (blockDim.x / kWarp),
                       warp = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
    for (std::int64_t first = warp; first < n; first += kAtOnce * warps)
        for (int j = lane_id(); j < lists.length; j += kWarp) {
            float distances[kAtOnce];
            u32 ids[kAtOnce];
#pragma unroll
            for (int l = 0; l < kAtOnce; ++l) {
                const std::int64_t i = first + l * warps;
                distances[l] = i < n ? lists.distances[i * lists.length + j] : INFINITY;
                ids[l] = i < n ? lists.ids[i * lists.length + j] : 0;
            }
#pragma unroll
            for (int l = 0; l < kAtOnce; ++l) {
                if (j < k && distances[l] < INFINITY) {
                    phi += distances[l];
                    ++entries;
                }
                fresh += ids[l] >= kNewBit;
            }
        }
    phi = warp_sum(phi);
    entries = warp_sum(entries);
    fresh = warp_sum(fresh);
    if (lane_id() == 0) {
        Counters& sum = counters[(blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp) % kSpread];
        atomicAdd(&sum.phi, phi);
        atomicAdd(&sum.entries, entries);
        atomicAdd(&sum.fresh, fresh);
    }
}

__global__ void check_convergence_kernel(int iteration, double threshold, const SpaceInfo* info, StopFlag* stop,
                                         Counters* counters, Record* record) {
    __shared__ Counters part[kSpread / kWarp];
    if (stop->raised) return;
    Counters mine = counters[threadIdx.x];
    counters[threadIdx.x] = {};
    mine = {warp_sum(mine.phi),      warp_sum(mine.entries), warp_sum(mine.fresh),    warp_sum(mine.offered),
            warp_sum(mine.accepted), warp_sum(mine.lost),    warp_sum(mine.distances)};
    if (lane_id() == 0) part[threadIdx.x / kWarp] = mine;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < kSpread / kWarp; ++i) {
        mine.phi += part[i].phi;
        mine.entries += part[i].entries;
        mine.fresh += part[i].fresh;
        mine.offered += part[i].offered;
        mine.accepted += part[i].accepted;
        mine.lost += part[i].lost;
        mine.distances += part[i].distances;
    }
    mine.phi = mine.phi * info->unit + double(mine.entries) * info->offset;
    const bool converged = iteration > 0 && double(mine.fresh) < threshold;
    const u64 now = nanoseconds();
    *record = {mine, now, now, converged, 0, -1, 0};
    stop->raised = converged;
}

}  // namespace

void clear(const Lists& lists, const Candidates& candidates, std::int64_t n, cudaStream_t stream) {
    clear_kernel<<<1024, kThreads, 0, stream>>>(lists, candidates, n);
    GNND_LAUNCHED("clear_kernel");
}

void pair_bounds(const Lists& lists, const u32* bias, std::int64_t n, cudaStream_t stream) {
    pair_bounds_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(lists, bias, n);
    GNND_LAUNCHED("pair_bounds_kernel");
}

std::size_t sort_bytes(std::int64_t n) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<u32> keys, order;
    GNND_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, order, n, 0, 32));
    return bytes;
}

void make_ids_plain(const Lists& lists, std::int64_t n, cudaStream_t stream) {
    make_ids_plain_kernel<<<blocks_for(n * lists.length, kThreads), kThreads, 0, stream>>>(lists.ids, n * lists.length);
    GNND_LAUNCHED("make_ids_plain_kernel");
}

void number(u32* order, std::int64_t n, cudaStream_t stream) {
    number_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(order, n);
    GNND_LAUNCHED("number_kernel");
}

void sort(u32* (&keys)[2], u32* (&order)[2], std::int64_t n, int bits, void* work, std::size_t bytes,
          cudaStream_t stream) {
    cub::DoubleBuffer<u32> by(keys[0], keys[1]), values(order[0], order[1]);
    GNND_CUDA(cub::DeviceRadixSort::SortPairs(work, bytes, by, values, n, 0, bits, stream));
    if (by.Current() != keys[0]) std::swap(keys[0], keys[1]);
    if (values.Current() != order[0]) std::swap(order[0], order[1]);
}

bool can_sort_nodes(std::int64_t node, int pivots) {
    return node <= kItemsToSort * kMostSorting && pivots <= 1 << kPivotBits;
}

void sort_nodes(const u32* keys, u32* order, std::int64_t n, std::int64_t node, int pivots, cudaStream_t stream) {
    const auto start = [&]<int Threads>(std::integral_constant<int, Threads>) {
        sort_node_kernel<Threads><<<blocks_for(n, node), Threads, 0, stream>>>(keys, order, n, node, pivots);
        GNND_LAUNCHED("sort_node_kernel");
    };
    if (node <= kItemsToSort * 64)
        start(std::integral_constant<int, 64>());
    else if (node <= kItemsToSort * 128)
        start(std::integral_constant<int, 128>());
    else if (node <= kItemsToSort * 256)
        start(std::integral_constant<int, 256>());
    else
        start(std::integral_constant<int, kMostSorting>());
}

void split(Lists& lists, int segments, std::int64_t n, cudaStream_t stream) {
    lists.segments = segments;
    constexpr int kWarps = 4;
    const int bytes = kWarps * (lists.length * int(sizeof(u64)) + kMaxSegments * int(sizeof(u32)));
    split_kernel<<<blocks_for(n, kWarps), kWarps * kWarp, bytes, stream>>>(lists, n);
    GNND_LAUNCHED("split_kernel");
}

void allocate_offsets(const u32* counts, u64* offsets, std::int64_t owners, const StopFlag* stop, cudaStream_t stream) {
    GNND_CUDA(cudaMemsetAsync(offsets + owners, 0, sizeof(u64), stream));
    allocate_offsets_kernel<<<blocks_for(owners, kThreads), kThreads, 0, stream>>>(counts, offsets, owners, stop);
    GNND_LAUNCHED("allocate_offsets_kernel");
}

void sample(const Lists& lists, const Samples& samples, const Filter& filter, u32 salt, detail::Pairs pairs,
            const u32* visit, std::int64_t n, const StopFlag* stop, cudaStream_t stream) {
    GNND_CUDA(cudaMemsetAsync(samples.reverse, 0, std::size_t(n) * 2 * sizeof(u32), stream));
    sample_kernel<<<blocks_for(n, kSampleWarps), kSampleWarps * kWarp, 0, stream>>>(lists, samples, filter, pairs,
                                                                                    visit, n, stop);
    GNND_LAUNCHED("sample_kernel");
    if (samples.offsets == nullptr) return;
    constexpr int kThreads = kReverseWarps * kWarp;
    allocate_offsets(samples.reverse, samples.offsets, 2 * n, stop, stream);
    scatter_kernel<<<blocks_for(n, kReverseWarps), kThreads, 0, stream>>>(samples, n, stop);
    GNND_LAUNCHED("scatter_kernel");
    choose_kernel<<<blocks_for(2 * n, kReverseWarps), kThreads, 0, stream>>>(samples, salt, n, stop);
    GNND_LAUNCHED("choose_kernel");
}

void apply_candidates(const Lists& lists, const Candidates& candidates, std::int64_t n, const StopFlag* stop,
                      Counters* counters, cudaStream_t stream) {
    const auto start = [&]<int Chunks>(std::integral_constant<int, Chunks>) {
        apply_candidates_kernel<Chunks><<<blocks_for(n, apply_warps(Chunks)), apply_warps(Chunks) * kWarp, 0, stream>>>(
            lists, candidates, n, stop, counters);
        GNND_LAUNCHED("apply_candidates_kernel");
    };
    if (lists.length <= 32)
        start(std::integral_constant<int, 1>());
    else if (lists.length <= 64)
        start(std::integral_constant<int, 2>());
    else if (lists.length <= 128)
        start(std::integral_constant<int, 4>());
    else if (lists.length <= 256)
        start(std::integral_constant<int, 8>());
    else if (lists.length <= 512)
        start(std::integral_constant<int, 16>());
    else
        start(std::integral_constant<int, 32>());
}

void fill_lists(const Lists& lists, const Candidates& candidates, std::int64_t n, Counters* counters,
                cudaStream_t stream) {
    const auto start = [&]<int Chunks>(std::integral_constant<int, Chunks>) {
        fill_lists_kernel<Chunks>
            <<<blocks_for(n, kFillWarps), kFillWarps * kWarp, 0, stream>>>(lists, candidates, n, counters);
        GNND_LAUNCHED("fill_lists_kernel");
    };
    if (candidates.capacity <= 32)
        start(std::integral_constant<int, 1>());
    else if (candidates.capacity <= 64)
        start(std::integral_constant<int, 2>());
    else
        start(std::integral_constant<int, kMostToFill / kWarp>());
}

void check_convergence(const Lists& lists, int k, std::int64_t n, int iteration, double threshold,
                       const SpaceInfo* info, StopFlag* stop, Counters* counters, Record* record, cudaStream_t stream) {
    sum_up_kernel<<<1024, kThreads, 0, stream>>>(lists, k, n, stop, counters);
    GNND_LAUNCHED("sum_up_kernel");
    check_convergence_kernel<<<1, kSpread, 0, stream>>>(iteration, threshold, info, stop, counters, record);
    GNND_LAUNCHED("check_convergence_kernel");
}

}  // namespace gnnd::cuda
