// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/device/tile.cuh"
#include "gnnd/cuda/recall/recall.h"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

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
__global__ void __launch_bounds__(kThreads) found_kernel(FoundArgs args) {
    __shared__ int found_by[kWarps];
    const u32 i = blockIdx.x;
    const RawVectors& vectors = args.vectors;
    const u32 object = args.objects[i];
    const int warp = int(threadIdx.x) / kWarp, width = args.width;
    const float bound = args.equal * args.bounds[i];
    const T* row = raw_row<T>(vectors, object);
    const u32* list = args.ids + std::int64_t(object) * args.stride;
    constexpr int kAtOnce = 4;
    int found = 0;
    for (int first = warp * kAtOnce; first < width; first += kWarps * kAtOnce) {
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
    for (int other = 1; other < kWarps; ++other) found += found_by[other];
    if (found >= args.at) return;
    double power = 1;
    for (double& sum : args.sums->missed) atomicAdd(&sum, power *= args.at - found);
}

/// Of decide_kernel().
struct DecideArgs {
    std::int64_t n;          ///< objects that the sample is of
    u32 count;               ///< objects of the sample
    int at;                  ///< true neighbours that count
    double wanted;           ///< the recall that was asked for
    RecallCounts counts;     ///< when it counts
    const RecallSums* sums;  ///< one
    const RecallSums* all;   ///< one, of all columns; null: they are not measured
    double most_of_all;      ///< entries that may be missing there
    StopFlag* stop;          ///< one
    Record* record;          ///< one
};

/// One thread: raises the flag where the recall is there.
__global__ void decide_kernel(DecideArgs args) {
    if (args.stop->raised) return;
    detail::RecallCount count{args.n, args.count, args.at};
    for (int i = 0; i < count.kPowers; ++i) count.missed[i] = args.sums->missed[i];
    Record& record = *args.record;
    record.found = double(args.count) * args.at - count.missed[0];
    record.measured = nanoseconds();
    if (record.sum.entries < args.counts.least_entries || record.sum.fresh > args.counts.most_changed) return;
    if (args.all != nullptr && args.all->missed[0] > args.most_of_all) return;
    if (!detail::shows(count, args.wanted, detail::kSamplesOfGpu)) return;
    args.stop->raised = 1;
    record.reached = 1;
}

/// A warp an object, four lanes a true neighbour. By products of int8, of which a row has kComponents.
/// \param objects  count
__global__ void __launch_bounds__(kThreads)
    lost_kernel(Points points, const u32* objects, u32 count, Lists truth, Lists lists, RecallSums* sums) {
    const u32 i = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (i >= count) return;
    const u32 object = objects[i];
    int lost = 0;
    for (int j = 0; j < truth.length; ++j) {
        const u32 id = truth.ids[std::int64_t(i) * truth.length + j] & ~kNewBit;
        if (id >= points.n) continue;
        const int product = TensorProducts<PackedType::i8>::pair(points, object, id);
        lost += float(int(points.bias[object] + points.bias[id]) + points.scale * product) > lists.bound(object);
    }
    if (lane_id() == 0 && lost != 0) atomicAdd(&sums->lost, double(lost));
}

__global__ void record_lost_kernel(const RecallSums* sums, Record* record) {
    record->lost = sums->lost;
}

/// Bytes that may be taken beside all that is planned for a build.
/// \param taken  so many of them are already
std::size_t spare_memory(const BuildState& state, std::size_t taken) {
    const auto left = [](std::size_t there, std::size_t used) {
        if (there == 0) return ~std::size_t(0);  // any number
        return there > used ? there - used : 0;
    };
    return std::min(left(state.resources.free_device_memory(), state.plan.beside),
                    left(std::size_t(state.params.device_memory), state.plan.total + state.plan.beside + taken));
}

}  // namespace

SweepSpace sweep_space_of(const BuildState& state, std::size_t taken) {
    return {.raw = state.raw,
            .metric = state.params.metric,
            .packed = state.plan.packed,
            .rows = {state.points.rows, state.n, state.plan.row_bytes},
            .norms = reinterpret_cast<const u32*>(state.memory + state.plan.bias.offset),
            .info = state.info,
            .columns = state.n,
            .spare = spare_memory(state, taken)};
}

RecallMeter::RecallMeter(const SweepSpace& space, const BuildParams& params, const detail::ObjectRange& part,
                         std::int64_t sample, Resources& resources, Stopwatch& watch, cudaStream_t stream)
    : space_(space),
      wanted_(double(params.recall)),
      stream_(stream),
      at_(detail::recall_at_of(params)),
      part_(part),
      sampled_(std::min(part.count, sample)),
      seed_(params.seed),
      sweep_(space, at_, resources, stream),
      memory_(resources, std::size_t(sampled_) * sizeof(u32) + 256, stream),
      numbers_(reinterpret_cast<u32*>(memory_.data() + 256)),
      sums_(reinterpret_cast<RecallSums*>(memory_.data())),
      watch_(watch),
      truth_watch_(stream),
      drain_(stream) {}

RecallMeter::RecallMeter(const BuildState& state, Stopwatch& watch)
    : RecallMeter(sweep_space_of(state), state.params, state.input.measured(),
                  detail::objects_to_measure(state.input.measured().count, double(state.params.recall)),
                  state.resources, watch, state.stream) {
    if (const auto all = detail::of_all_columns(state.params))
        all_ = std::make_unique<RecallMeter>(space_, *all, state.input.measured(), detail::kAllColumnsObjects,
                                             state.resources, watch, state.stream);
}

std::size_t RecallMeter::bytes_of_build(const SweepSpace& shape, const BuildParams& params, std::int64_t count) {
    const std::size_t counted = bytes(shape, params, detail::objects_to_measure(count, double(params.recall)));
    const auto all = detail::of_all_columns(params);
    return counted + (all ? bytes(shape, *all, detail::kAllColumnsObjects) : 0);
}

std::size_t RecallMeter::bytes(const SweepSpace& shape, const BuildParams& params, std::int64_t sample) {
    const auto objects = std::min(shape.raw.n, sample);
    return Sweep::bytes_of_some(shape, u32(objects), detail::recall_at_of(params)) + std::size_t(objects) * 4 + 256;
}

void RecallMeter::find_truth(const u32* ids, int stride, int width) {
    // Not before they are needed: now the device works on the first iteration meanwhile.
    std::vector<std::int32_t> objects = detail::sample_objects(part_.count, sampled_, seed_);
    for (std::int32_t& object : objects) object += std::int32_t(part_.first);
    const Stopwatch::Piece piece(watch_), of_truth(truth_watch_);
    GNND_CUDA(cudaMemcpyAsync(numbers_, objects.data(), objects.size() * sizeof(u32), cudaMemcpyHostToDevice, stream_));
    truth_ = sweep_.nearest_of(objects.data(), u32(sampled_), ids, stride, width);
    if (all_) all_->find_truth(ids, stride, width);
}

double RecallMeter::seconds_of_all_pairs() const {
    return truth_watch_.seconds() * double(space_.raw.n) / (2 * double(sampled_));
}

void RecallMeter::start(const u32* ids, int stride, int width, StopFlag* stop, Record* record,
                        const RecallCounts& counts) {
    if (all_) all_->start(ids, stride, width);
    const Stopwatch::Piece piece(watch_);
    const u32 count = u32(sampled_);
    GNND_CUDA(cudaMemsetAsync(sums_, 0, sizeof(RecallSums), stream_));
    const FoundArgs found{.vectors = space_.raw,
                          .objects = numbers_,
                          .ids = ids,
                          .stride = stride,
                          .width = width,
                          .bounds = truth_.bounds,
                          .equal = float(detail::rounding_factor(space_.metric, space_.raw.d)),
                          .at = at_,
                          .sums = sums_};
    visit_dtype(space_.raw.dtype, [&](auto component) {
        visit(space_.metric, [&]<class M>(M) {
            found_kernel<decltype(component), M><<<count, kThreads, 0, stream_>>>(found);
            GNND_LAUNCHED("found_kernel");
        });
    });
    if (record == nullptr) return;
    const DecideArgs decide{.n = part_.count,
                            .count = count,
                            .at = at_,
                            .wanted = wanted_,
                            .counts = counts,
                            .sums = sums_,
                            .all = all_ ? all_->sums_ : nullptr,
                            .most_of_all = all_ ? (1 - all_->wanted_) * double(all_->sampled_) * all_->at_ : 0,
                            .stop = stop,
                            .record = record};
    decide_kernel<<<1, 1, 0, stream_>>>(decide);
    GNND_LAUNCHED("decide_kernel");
}

void RecallMeter::count_lost(const Points& points, const Lists& lists, Record* record) {
    const u32 count = u32(sampled_);
    lost_kernel<<<blocks_for(count, kWarps), kThreads, 0, stream_>>>(points, numbers_, count, truth_, lists, sums_);
    GNND_LAUNCHED("lost_kernel");
    record_lost_kernel<<<1, 1, 0, stream_>>>(sums_, record);
    GNND_LAUNCHED("record_lost_kernel");
}

RecallEstimate RecallMeter::estimate() {
    GNND_CUDA(cudaMemcpyAsync(&here_[0], sums_, sizeof(RecallSums), cudaMemcpyDeviceToHost, stream_));
    GNND_CUDA(cudaStreamSynchronize(stream_));
    detail::RecallCount count{part_.count, sampled_, at_};
    std::copy_n(here_[0].missed, count.kPowers, count.missed);
    return detail::estimate_recall(count, detail::kSamplesOfGpu);
}

}  // namespace gnnd::cuda
