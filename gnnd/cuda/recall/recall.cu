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

__device__ detail::RecallCount with(detail::RecallCount count, const double* missed) {
    for (int i = 0; i < count.kPowers; ++i) count.missed[i] = missed[i];
    return count;
}

/// How many objects there should be, where what is counted does not show the recall; 0: no more than there are.
__device__ int others_wanted(const detail::RecallCount& count, const DecideArgs& args) {
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

/// Objects that a build measures.
std::int64_t sample_of(const BuildState& state) {
    return detail::objects_to_measure(state.input.measured().count, double(state.params.recall));
}

/// What a meter keeps: sums, and of each object its number, its bounds and its true neighbours.
std::size_t bytes_of_objects(std::int64_t objects, int at) {
    return 256 + std::size_t(objects) * std::size_t(3 + at) * sizeof(u32);
}

/// The neighbours that a meter finds of some of its objects.
int columns_of(const BuildParams& params, const std::optional<BuildParams>& all) {
    return detail::recall_at_of(all ? *all : params);
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
                         std::int64_t sample, Resources& resources, Stopwatch& watch, cudaStream_t stream,
                         std::int64_t first)
    : RecallMeter(space, params, std::nullopt, part, sample, resources, watch, stream, first) {}

RecallMeter::RecallMeter(const SweepSpace& space, const BuildParams& params, const std::optional<BuildParams>& all,
                         const detail::ObjectRange& part, std::int64_t sample, Resources& resources, Stopwatch& watch,
                         cudaStream_t stream, std::int64_t first)
    : space_(space),
      wanted_(double(params.recall)),
      stream_(stream),
      at_(detail::recall_at_of(params)),
      part_(part),
      sampled_(std::min(part.count, sample)),
      first_(std::min(sampled_, first)),
      whole_(all ? std::min(first_, detail::kAllColumnsObjects) : 0),
      wanted_of_all_(all ? double(all->recall) : 0),
      seed_(params.seed),
      sweep_(space, columns_of(params, all), resources, stream),
      memory_(resources, bytes_of_objects(sampled_, at_), stream),
      numbers_(reinterpret_cast<u32*>(memory_.data() + 256)),
      truth_{.ids = numbers_ + 3 * sampled_,
             .distances = nullptr,
             .bounds = reinterpret_cast<float*>(numbers_ + sampled_),
             .length = at_,
             .segments = 1},
      bounds_of_all_(truth_.bounds + sampled_),
      sums_(reinterpret_cast<RecallSums*>(memory_.data())),
      watch_(watch),
      truth_watch_(stream),
      comparisons_(stream),
      drain_(stream) {}

RecallMeter::RecallMeter(const BuildState& state, Stopwatch& watch)
    : RecallMeter(sweep_space_of(state), state.params, detail::of_all_columns(state.params), state.input.measured(),
                  sample_of(state), state.resources, watch, state.stream,
                  detail::objects_at_first(std::min(state.input.measured().count, sample_of(state)), state.n,
                                           state.plan.row_bytes, double(state.params.recall))) {}

std::size_t RecallMeter::bytes_of_build(const SweepSpace& shape, const BuildParams& params, std::int64_t count) {
    const auto objects = std::min(count, detail::objects_to_measure(count, double(params.recall)));
    return Sweep::bytes_of_some(shape, u32(objects), columns_of(params, detail::of_all_columns(params))) +
           bytes_of_objects(objects, detail::recall_at_of(params));
}

std::size_t RecallMeter::bytes(const SweepSpace& shape, const BuildParams& params, std::int64_t sample) {
    const auto objects = std::min(shape.raw.n, sample);
    const int at = detail::recall_at_of(params);
    return Sweep::bytes_of_some(shape, u32(objects), at) + bytes_of_objects(objects, at);
}

void RecallMeter::find_truth(const u32* ids, int stride, int width) {
    // Not before they are needed: now the device works on the first iteration meanwhile.
    objects_ = first_ < sampled_ || whole_ != 0 ? detail::sample_in_any_order(part_.count, sampled_, seed_)
                                                : detail::sample_objects(part_.count, sampled_, seed_);
    for (std::int32_t& object : objects_) object += std::int32_t(part_.first);
    const Stopwatch::Piece piece(watch_), of_truth(truth_watch_);
    GNND_CUDA(
        cudaMemcpyAsync(numbers_, objects_.data(), objects_.size() * sizeof(u32), cudaMemcpyHostToDevice, stream_));
    sweep_.make_room(u32(sampled_));  // for others, too: later the device would wait for the driver to find it
    if (first_ < sampled_) sweep_.time_comparisons(&comparisons_);
    grow(first_, ids, stride, width);
    sweep_.time_comparisons(nullptr);
    seconds_left_out_ = comparisons_.seconds() * double(sampled_ - first_) / double(first_);
}

/// The sweep begins with each part anew; what is kept of it is copied.
void RecallMeter::grow(std::int64_t count, const u32* ids, int stride, int width) {
    const Stopwatch::Piece piece(watch_);
    const std::int64_t added = std::min(count, sampled_) - counted_;
    const u32 whole = counted_ == 0 ? u32(whole_) : 0;
    const Lists found =
        sweep_.nearest_of(objects_.data() + counted_, u32(added), ids, stride, width, {.whole = whole, .at = at_});
    keep_truth_kernel<<<blocks_for(added * at_, kThreads), kThreads, 0, stream_>>>(
        found, at_, added, truth_.ids + counted_ * at_, truth_.bounds + counted_);
    GNND_LAUNCHED("keep_truth_kernel");
    if (whole != 0)
        GNND_CUDA(
            cudaMemcpyAsync(bounds_of_all_, found.bounds, whole * sizeof(float), cudaMemcpyDeviceToDevice, stream_));
    counted_ += added;
}

double RecallMeter::seconds_of_all_pairs() const {
    return (truth_watch_.seconds() + seconds_left_out_) * double(space_.raw.n) / (2 * double(sampled_));
}

/// \param objects  the first so many
void RecallMeter::count_found(const u32* ids, int stride, int width, const float* bounds, std::int64_t objects, int at,
                              RecallSums* sums) {
    if (objects == 0) return;
    const FoundArgs found{.vectors = space_.raw,
                          .objects = numbers_,
                          .ids = ids,
                          .stride = stride,
                          .width = width,
                          .bounds = bounds,
                          .equal = float(detail::rounding_factor(space_.metric, space_.raw.d)),
                          .at = at,
                          .sums = sums};
    visit_dtype(space_.raw.dtype, [&](auto component) {
        visit(space_.metric, [&]<class M>(M) {
            found_kernel<decltype(component), M><<<u32(objects), kThreads, 0, stream_>>>(found);
            GNND_LAUNCHED("found_kernel");
        });
    });
}

void RecallMeter::start(const u32* ids, int stride, int width, StopFlag* stop, Record* record,
                        const RecallCounts& counts) {
    const Stopwatch::Piece piece(watch_);
    GNND_CUDA(cudaMemsetAsync(sums_, 0, 2 * sizeof(RecallSums), stream_));
    count_found(ids, stride, width, truth_.bounds, counted_, at_, sums_);
    count_found(ids, stride, width, bounds_of_all_, whole_, sweep_.k(), sums_ + 1);
    if (record == nullptr) return;
    const DecideArgs decide{.measured = none_missed(),
                            .all = sampled_,
                            .wanted = wanted_,
                            .sums = sums_,
                            .stop = stop,
                            .record = record,
                            .counts = counts,
                            .of_columns = whole_ != 0 ? sums_ + 1 : nullptr,
                            .most_of_columns = (1 - wanted_of_all_) * double(whole_) * sweep_.k()};
    decide_kernel<<<1, 1, 0, stream_>>>(decide);
    GNND_LAUNCHED("decide_kernel");
}

void RecallMeter::count_lost(const Points& points, const Lists& lists, StopFlag* stop, Record* record) {
    const u32 count = u32(counted_);
    lost_kernel<<<blocks_for(count, kWarps), kThreads, 0, stream_>>>(points, numbers_, count, truth_, lists, sums_);
    GNND_LAUNCHED("lost_kernel");
    const DecideArgs decide{none_missed(), sampled_, wanted_, sums_, stop, record};
    record_lost_kernel<<<1, 1, 0, stream_>>>(decide);
    GNND_LAUNCHED("record_lost_kernel");
}

RecallEstimate RecallMeter::estimate_all() {
    return whole_ != 0 ? estimate({part_.count, whole_, sweep_.k()}, 1) : RecallEstimate{};
}

RecallEstimate RecallMeter::estimate(detail::RecallCount count, int sums) {
    GNND_CUDA(cudaMemcpyAsync(&here_[0], sums_ + sums, sizeof(RecallSums), cudaMemcpyDeviceToHost, stream_));
    GNND_CUDA(cudaStreamSynchronize(stream_));
    std::copy_n(here_[0].missed, count.kPowers, count.missed);
    return detail::estimate_recall(count, detail::kSamplesOfGpu);
}

}  // namespace gnnd::cuda
