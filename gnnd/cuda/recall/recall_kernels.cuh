// SPDX-License-Identifier: MIT
#pragma once
/// \file recall_kernels.cuh
/// The kernels of a RecallMeter, which includes them.

#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/tile.cuh"
#include "gnnd/cuda/recall/recall.h"

namespace gnnd::cuda {

/// Of a block of these kernels.
inline constexpr int kRecallThreads = 256, kRecallWarps = kRecallThreads / kWarp;

/// Of found_kernel().
struct FoundArgs {
    RawVectors vectors;   ///< n x d
    const u32* objects;   ///< of the sample, one for each block
    const u32* ids;       ///< n x stride, the graph or its lists
    int stride, width;    ///< entries of a row, and how many of them are looked at
    const float* bounds;  ///< of each: the distance of the last true neighbour that counts
    float equal;          ///< up to so many times it, see detail::rounding_factor()
    int at;               ///< true neighbours that count
    RecallSums* sums;     ///< one
};

/// A block an object: how many of its neighbours are not farther than its last true one. Its warps take neighbours in
/// turn, for of all columns there are few objects with many neighbours.
template <class T, class M>
__global__ void __launch_bounds__(kRecallThreads) found_kernel(FoundArgs args) {
    __shared__ int found_by[kRecallWarps];
    const u32 i = blockIdx.x;
    const RawVectors& vectors = args.vectors;
    const u32 object = args.objects[i];
    const int warp = int(threadIdx.x) / kWarp, width = args.width;
    const float bound = args.equal * args.bounds[i];
    const T* row = raw_row<T>(vectors, object);
    const u32* list = args.ids + std::int64_t(object) * args.stride;
    constexpr int kAtOnce = 4;
    int found = 0;
    for (int first = warp * kAtOnce; first < width; first += kRecallWarps * kAtOnce) {
        float distances[kAtOnce];
        const auto id_at = [&](int j) { return first + j < width ? list[first + j] & ~kNewBit : kNoId; };
        exact_several<T, M>(
            distances, row, [&](int j) { return raw_row<T>(vectors, id_at(j) < vectors.n ? id_at(j) : object); },
            vectors.d);
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
            found += id_at(j) < vectors.n && (M::similarity ? -distances[j] : distances[j]) <= bound;
    }
    if (lane_id() == 0) found_by[warp] = found;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int other = 1; other < kRecallWarps; ++other) found += found_by[other];
    if (found >= args.at) return;
    double power = 1;
    for (double& sum : args.sums->missed) atomicAdd(&sum, power *= args.at - found);
}

/// A thread an entry.
/// \param found   count lists, of which the first `at` entries are kept
/// \param ids     count x at, written
/// \param bounds  count, written: the distances of the last ones
__global__ void keep_truth_kernel(Lists found, int at, std::int64_t count, u32* ids, float* bounds) {
    const std::int64_t entry = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= count * at) return;
    const std::int64_t i = entry / at, from = i * found.length + entry % at;
    ids[entry] = found.ids[from];
    if (entry % at == at - 1) bounds[i] = found.distances[from];
}

/// Of decide_kernel() and record_lost_kernel().
struct DecideArgs {
    detail::RecallCount measured;            ///< the objects, and nothing missed
    std::int64_t all;                        ///< objects that there may be in the end
    double wanted;                           ///< the recall that was asked for
    const RecallSums* sums;                  ///< one
    StopFlag* stop;                          ///< one
    Record* record;                          ///< one
    RecallCounts counts{};                   ///< when it counts
    const RecallSums* of_columns = nullptr;  ///< one, of all columns; null: they are not measured
    double most_of_columns = 0;              ///< entries that may be missing there
};

__device__ inline detail::RecallCount with(detail::RecallCount count, const double* missed) {
    for (int i = 0; i < count.kPowers; ++i) count.missed[i] = missed[i];
    return count;
}

/// How many objects there should be, where what is counted does not show the recall; 0: no more than there are.
__device__ inline int others_wanted(const detail::RecallCount& count, const DecideArgs& args) {
    if (count.objects >= args.all) return 0;
    const std::int64_t next = detail::objects_to_go_on_with(count, args.wanted, args.all);
    return next > count.objects ? int(next) : 0;
}

/// One thread: raises the flag where the recall is there.
__global__ void decide_kernel(DecideArgs args) {
    if (args.stop->raised) return;
    const detail::RecallCount count = with(args.measured, args.sums->missed);
    Record& record = *args.record;
    record.found = double(count.objects) * count.at - count.missed[0];
    record.measured = nanoseconds();
    record.reached = 0;
    if (record.sum.entries < args.counts.least_entries || record.sum.fresh > args.counts.most_changed) return;
    if (args.of_columns != nullptr && args.of_columns->missed[0] > args.most_of_columns) return;
    if (detail::shows(count, args.wanted, detail::kSamplesOfGpu))
        args.stop->raised = record.reached = 1;
    else
        record.reached = -others_wanted(count, args);
}

/// A warp an object, four lanes a true neighbour. By products of int8, of which a row has kComponents.
/// \param objects  count
__global__ void __launch_bounds__(kRecallThreads)
    lost_kernel(Points points, const u32* objects, u32 count, Lists truth, Lists lists, RecallSums* sums) {
    const u32 i = blockIdx.x * kRecallWarps + threadIdx.x / kWarp;
    if (i >= count) return;
    const u32 object = objects[i];
    int lost = 0;
    for (int j = 0; j < truth.length; ++j) {
        const u32 id = truth.ids[std::int64_t(i) * truth.length + j] & ~kNewBit;
        if (id >= points.n) continue;
        const int product = TensorProducts<PackedType::i8>::pair(points, object, id);
        lost += float(int(points.bias[object] + points.bias[id]) + points.scale * product) > lists.bound(object);
    }
    double power = 1;
    if (lane_id() == 0 && lost != 0)
        for (double& sum : sums->lost) atomicAdd(&sum, power *= lost);
}

/// One thread. What is lost decides on the rows, as what is missing does on the lists: a graph that lacked nothing else
/// would have the recall, it would not, or only more objects tell.
__global__ void record_lost_kernel(DecideArgs args) {
    const detail::RecallCount count = with(args.measured, args.sums->lost);
    args.record->lost = count.missed[0];
    if (!args.stop->raised && !detail::shows(count, args.wanted, detail::kSamplesOfGpu))
        args.record->reached = min(args.record->reached, -others_wanted(count, args));
}

}  // namespace gnnd::cuda
