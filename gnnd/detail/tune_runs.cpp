// SPDX-License-Identifier: MIT
#include "gnnd/detail/tune_runs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::detail {
namespace {

/// Rows where none are given, and so many times fewer in the smaller sample. With less than half as many again in the
/// larger one there is no second one.
constexpr std::int64_t kCpuRows = 40'000, kGpuRows = 400'000, kTimesFewer = 4;
constexpr double kLeastRatio = 1.5;

}  // namespace

TuneRuns::TuneRuns(const VectorView& vectors, const BuildParams& params, const TuneParams& how,
                   const TuneCallbacks& callbacks, Resources* resources)
    : vectors_(vectors), given_(params), how_(how), callbacks_(callbacks), resources_(resources) {
    params.validate();
    how.validate();
    check_shape(vectors);
    if (device_of(vectors.data) >= 0)
        throw InvalidArgument("tune: the vectors are in a GPU's memory; they must be in the host's");
    standard_ = params;
    standard_.device = choose(params.device);
    result_.device = standard_.device;
    result_.n = vectors.n;
    const Input all{{vectors}, {}};
    Choices choices = resolve(standard_, all, standard_.device);
    exhaustive_ = choices.exhaustive && params.recall != 1;
    standard_.recall = 0;
    if (choices.exhaustive) choices = resolve(standard_, all, standard_.device);
    exhaustive_ = exhaustive_ || choices.exhaustive;
    standard_.samples = choices.samples;
    standard_.list_size = choices.list_size;
    standard_.trees = choices.trees;
    choose_rows();
}

bool TuneRuns::compares_all(const BuildParams& params, std::int64_t rows) const {
    VectorView part = vectors_;
    part.n = rows;
    return resolve(params, {{part}, {}}, standard_.device).exhaustive;
}

/// The fewest rows of which lists are built with these parameters.
std::int64_t TuneRuns::least_rows(const BuildParams& params) const {
    std::int64_t low = 2, high = kMaxObjects;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (compares_all(params, middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void TuneRuns::choose_rows() {
    const bool gpu = standard_.device.kind == Device::Kind::cuda;
    const std::int64_t wanted = how_.rows != 0 ? how_.rows : gpu ? kGpuRows : kCpuRows;
    result_.large_rows = std::min(vectors_.n, wanted);
    if (exhaustive_) {
        result_.large_rows = vectors_.n;
        return;
    }
    const std::int64_t least = least_rows(standard_);
    if (result_.large_rows < least) {
        if (how_.rows != 0)
            throw InvalidArgument("TuneParams::rows = " + std::to_string(how_.rows) + ", allowed are " +
                                  std::to_string(least) + " or more: of fewer all pairs are compared");
        result_.large_rows = std::min(vectors_.n, least);
    }
    const std::int64_t small = std::max(least, result_.large_rows / kTimesFewer);
    if (double(small) * kLeastRatio <= double(result_.large_rows)) result_.small_rows = small;
}

double TuneRuns::elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

/// Calls f with an interrupt that the user and the time can cause.
template <class F>
auto TuneRuns::in_time(F&& f) {
    bool by_time = false;
    Callbacks hooks;
    hooks.interrupt = [&] {
        if (callbacks_.interrupt && callbacks_.interrupt()) return true;
        by_time = how_.seconds > 0 && elapsed() > until_ * how_.seconds;
        return by_time;
    };
    try {
        if (hooks.interrupt()) throw Interrupted("tune: interrupted");
        return f(hooks);
    } catch (const Interrupted&) {
        if (by_time) throw OutOfTime();
        throw;
    }
}

TuneSample& TuneRuns::sample(Size size) {
    if (result_.small_rows == 0) size = larger;
    std::optional<TuneSample>& sample = samples_[size];
    if (!sample) {
        TuneSample drawn(vectors_, rows_of(size), given_.metric, given_.seed + std::uint64_t(size));
        in_time([&](const Callbacks& hooks) {
            drawn.find_truth(how_.objects, standard_, hooks, resources_);
            return 0;
        });
        sample.emplace(std::move(drawn));
    }
    return *sample;
}

TuneRun TuneRuns::build_of(const BuildParams& params, Size size) {
    const TuneSample& of = sample(size);
    const BuildResult built =
        in_time([&](const Callbacks& hooks) { return build(of.view(), params, hooks, resources_); });
    const BuildStats& stats = built.stats;
    result_.threads = stats.threads;
    TuneRun run{of.view().n, stats.seconds, of.recall_of(built.graph), 0, 0, stats.stop};
    if (run.stop == StopReason::exact) run.recall.low = run.recall.high = run.recall.value;
    for (const IterationStats& iteration : stats.iterations) {
        run.distances += iteration.distances;
        run.iterations = iteration.iteration;
    }
    return run;
}

void TuneRuns::measure(const BuildParams& params, Size size) {
    TuneRecord record;
    record.params = params;
    const TuneRun run = build_of(params, size);
    (size == first && result_.small_rows != 0 ? record.small : record.large) = run;
    result_.records.push_back(record);
    if (callbacks_.progress) callbacks_.progress(result_.records.back(), run);
}

void TuneRuns::measure_again(int position, Size size) {
    TuneRecord& record = result_.records[std::size_t(position)];
    const TuneRun run = build_of(record.params, size);
    TuneRun& kept = size == first && result_.small_rows != 0 ? record.small : record.large;
    if (kept.rows == 0 || run.seconds < kept.seconds) kept = run;
    if (callbacks_.progress) callbacks_.progress(record, run);
}

TuneResult TuneRuns::take_result() {
    result_.seconds = elapsed();
    return std::move(result_);
}

}  // namespace gnnd::detail
