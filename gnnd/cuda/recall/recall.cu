// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include "gnnd/cuda/recall/recall.h"
#include "gnnd/cuda/recall/recall_kernels.cuh"
#include "gnnd/cuda/sweep/sweep_layout.h"

namespace gnnd::cuda {
namespace {

/// All pairs take up to so many times as long as those of a sample tell (benchs/NOTEBOOK.md).
constexpr double kMoreOfAll = 1.1;

/// Bytes that may be taken beside all that is planned for a build.
/// \param taken  so many of them are already
std::size_t spare_memory(const BuildState& state, std::size_t taken) {
    return std::min(bytes_left(state.resources.free_device_memory(), state.plan.beside),
                    bytes_left(std::size_t(state.params.device_memory), state.plan.total + state.plan.beside + taken));
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

SweepSpace sweep_space_of(BuildState& state, std::size_t taken) {
    const auto pack = [&state](SweepForm form) -> SweptRows {
        if (form == SweepForm::projections)
            use_projection(state);
        else
            (form == SweepForm::codes ? use_codes : use_float16)(state);
        return {state.points.rows, state.n, state.form.row_bytes};
    };
    return {.raw = state.raw,
            .metric = state.params.metric,
            .packed = state.plan.packed,
            .rows = {state.points.rows, state.n, state.plan.row_bytes},
            .norms = reinterpret_cast<const u32*>(state.memory + state.plan.bias.offset),
            .info = state.info,
            .columns = state.n,
            .spare = spare_memory(state, taken),
            .errors = state.code_errors,
            .pack = state.plan.packed == PackedType::f16 ? pack : std::function<SweptRows(SweepForm)>()};
}

std::optional<SweepForm> codes_to_sweep(const BuildState& state) {
    if (!state.form.codes) return std::nullopt;
    const bool projected = state.form.components != 0;
    const bool may =
        projected ? projection_keeps_most(state) : may_sweep_codes(state.plan.packed, state.params.metric, state.raw.d);
    if (!may) return std::nullopt;
    return projected ? SweepForm::projections : SweepForm::codes;
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
      drain_(stream) {}

RecallMeter::RecallMeter(BuildState& state, Stopwatch& watch)
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

void RecallMeter::find_truth(const u32* ids, int stride, int width, std::optional<SweepForm> codes) {
    if (codes) sweep_.begin_with(*codes);
    // Not before they are needed: now the device works on the first iteration meanwhile.
    objects_ = first_ < sampled_ || whole_ != 0 ? detail::sample_in_any_order(part_.count, sampled_, seed_)
                                                : detail::sample_objects(part_.count, sampled_, seed_);
    for (std::int32_t& object : objects_) object += std::int32_t(part_.first);
    const Stopwatch::Piece piece(watch_);
    GNND_CUDA(
        cudaMemcpyAsync(numbers_, objects_.data(), objects_.size() * sizeof(u32), cudaMemcpyHostToDevice, stream_));
    sweep_.make_room(u32(sampled_));  // for others, too: later the device would wait for the driver to find it
    grow(first_, ids, stride, width);
    pace_ = sweep_.pace();
    if (!rates_) return;
    predicted_ = rates_(sweep_.form_of_all(), sweep_.k());
    more_ = predicted_ - rates_(sweep_.form_of_all(), at_);
}

/// The sweep begins with each part anew; what is kept of it is copied.
void RecallMeter::grow(std::int64_t count, const u32* ids, int stride, int width) {
    const Stopwatch::Piece piece(watch_);
    const std::int64_t added = std::min(count, sampled_) - counted_;
    const u32 whole = counted_ == 0 ? u32(whole_) : 0;
    const Lists found =
        sweep_.nearest_of(objects_.data() + counted_, u32(added), ids, stride, width, {.whole = whole, .at = at_});
    keep_truth_kernel<<<blocks_for(added * at_, kRecallThreads), kRecallThreads, 0, stream_>>>(
        found, at_, added, truth_.ids + counted_ * at_, truth_.bounds + counted_);
    GNND_LAUNCHED("keep_truth_kernel");
    if (whole != 0)
        GNND_CUDA(
            cudaMemcpyAsync(bounds_of_all_, found.bounds, whole * sizeof(float), cudaMemcpyDeviceToDevice, stream_));
    counted_ += added;
}

double RecallMeter::seconds_of_all_pairs() const {
    const double half = double(space_.raw.n) / 2, pairs = pace_.comparing * half / double(padded(pace_.rows));
    // Hits of more rows take little longer than those of few.
    const double hits = pace_.hits * half / double(std::max(pace_.rows, u32(sampled_)));
    const double measured = kMoreOfAll * (pairs + hits) + more_;
    if (predicted_ == 0) return measured;
    return sweep_.form_of_all() == sweep_.form() ? std::clamp(predicted_, pairs, measured) : predicted_;
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
            found_kernel<decltype(component), M><<<u32(objects), kRecallThreads, 0, stream_>>>(found);
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
    lost_kernel<<<blocks_for(count, kRecallWarps), kRecallThreads, 0, stream_>>>(points, numbers_, count, truth_, lists,
                                                                                 sums_);
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
