// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <string>

#include "gnnd/cuda/iterations.h"
#include "gnnd/cuda/runtime/wait.h"
#include "gnnd/cuda/space/bad_row.h"
#include "gnnd/detail/predict.h"
#include "gnnd/detail/report.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

/// The cross-matches of an iteration are split into passes, after each of which candidates are applied to the lists, so
/// that they find room. How many the first iterations need was measured: the first finds least, the second most; a
/// merge that starts from trees finds little enough for one.
constexpr int kPasses[] = {1, 3, 2};
/// A deterministic build compares pairs again whose candidates found no room, which costs more than applying them.
constexpr int kOrderedPasses[] = {4, 6, 3};
static_assert(std::size(kPasses) == std::size(kOrderedPasses));

/// Iterations whose objects have many samples of both kinds, where lists have room for as many: the first one has no
/// OLD samples, later ones have few NEW ones.
constexpr int kFirstFull = 2, kLastFull = 3;

/// Iterations after which the host waits to decide whether to go on.
constexpr int kDecisive = 3;
constexpr double kHopelessAtFirst = 0.5;
/// Where more than so much may be missing the first iteration does not tell.
constexpr double kMuch = 0.05;
/// The time of a build that finds too little in the end and goes on with longer lists, in first iterations.
constexpr double kAllIterations = 40;
/// If every entry of the lists is a sample: the shares that are missing after two iterations fall by the second
/// iteration's factor to this power more, and no further (measured: 1.1 to 1.5 on sets that settle). Others go on to
/// about half of that.
constexpr double kTail = 1.15;
/// From so many iterations on that factor says where any lists settle, within a factor of 1.6; where that is so many
/// times what may be missing, longer lists are what helps, and the rest of the iterations does not.
constexpr int kTelling = 3;
constexpr double kShort = 2;
/// Going on with longer lists takes as long as so many of the slowest iterations.
constexpr double kLongerLists = 8;
/// Iterations of a projection where nothing tells what it loses.
constexpr int kProjectedIterations = 2;

/// The share that will be missing in the end. \param missing, before  after the last two iterations
double settled(double missing, double before) {
    return missing * std::pow(missing / before, kTail);
}

int passes_of(const BuildState& state, int iteration) {
    if (state.variant.update != Update::automatic) return 1;  // those update lists at once
    const bool finds_little = state.input.merges() && grows_trees(state.params.init);
    const bool first_ones = iteration <= int(std::size(kPasses)) && !finds_little;
    const int* passes = state.params.deterministic ? kOrderedPasses : kPasses;
    return state.plan.passes * (first_ones ? passes[iteration - 1] : 1);
}

bool many_samples(const BuildState& state, int iteration) {
    return iteration >= kFirstFull && iteration <= kLastFull && 2 * state.plan.samples <= state.plan.length &&
           !state.input.merges();
}

}  // namespace

void iterate(BuildState& state, int iteration) {
    const u32 salt = state.variant.filter.salt = state.seed_of(u32(iteration)) | 1;
    sample(state.lists, state.samples, state.variant.filter, salt, state.points.pairs, state.visit, state.n, state.stop,
           state.stream);
    const int passes = passes_of(state, iteration);
    for (int pass = 0; pass < passes; ++pass) {
        state.engine->cross_match(state.points,
                                  {.samples = state.samples,
                                   .lists = state.lists,
                                   .variant = state.variant,
                                   .visit = state.visit,
                                   .first = pass,
                                   .stride = passes,
                                   .many_samples = many_samples(state, iteration),
                                   .only_new = iteration == 1 && !state.input.merges(),
                                   .stop = state.stop,
                                   .counters = state.counters},
                                  state.stream);
        if (state.variant.update == Update::automatic) state.take_candidates();
    }
}

void Iterations::begin() {
    const Stopwatch::Piece piece(first_steps_);
    initialize(state_);
    // Cross-matches read all places of an object before they know how many of them hold samples.
    GNND_CUDA(cudaMemsetAsync(state_.samples.ids, 0, state_.plan.sample_ids.bytes, state_.stream));
    if (state_.variant.locks != nullptr)
        GNND_CUDA(cudaMemsetAsync(state_.variant.locks, 0, state_.plan.locks.bytes, state_.stream));
    if (state_.plan.segments > 1) split(state_.lists, state_.plan.segments, state_.n, state_.stream);
    pair_bounds(state_.lists, state_.points.bias, state_.n, state_.stream);
}

void Iterations::run(RecallMeter* meter, bool may_give_up) {
    meter_ = meter;
    may_give_up_ = may_give_up;
    state_.settles = 1;
    const double threshold = detail::convergence_threshold(state_.params, state_.input);
    GNND_CUDA(cudaMemcpyAsync(&info_[0], state_.info, sizeof(SpaceInfo), cudaMemcpyDeviceToHost, state_.stream));
    begin();
    submit(0, 0);
    follow(0);
    int iteration = 0;
    while (iteration < most_iterations() && !ended()) {
        iterate(state_, ++iteration);
        submit(iteration, threshold);
        follow(iteration);
    }
    while (awaited_ < iteration && !ended()) await(++awaited_);
    finer_ = projected() && !reached_ && (finer_ || meter_ == nullptr);
    stats_.stop = reached_ ? StopReason::recall : converged_ ? StopReason::converged : StopReason::iterations;
}

int Iterations::most_iterations() const {
    const int limit = state_.params.iterations;  // the caller's is one for all that follow each other
    const int left = limit == BuildParams{}.iterations ? limit : limit - std::max(first_ - 1, 0);
    return projected() && meter_ == nullptr ? std::min(left, kProjectedIterations) : left;
}

void Iterations::submit(int iteration, double convergence_threshold) {
    const int slot = iteration % (kAhead + 1);
    Record* record = state_.records + slot;
    check_convergence(state_.lists, state_.params.k, state_.n, iteration, convergence_threshold, state_.info,
                      state_.stop, state_.counters, record, state_.stream);
    if (meter_ != nullptr && (iteration > 0 || state_.input.refines())) measure(iteration, 0);
    send(slot);
}

void Iterations::send(int slot) {
    GNND_CUDA(
        cudaMemcpyAsync(&records_[slot], state_.records + slot, sizeof(Record), cudaMemcpyDeviceToHost, state_.stream));
    GNND_CUDA(cudaEventRecord(events_[slot], state_.stream));
}

/// Reads records, behind submit(): the last one, too, where the host decides by it how to go on. The first ones may say
/// that going on is in vain, each of a projection that it takes other rows, and each of a sample that may grow that it
/// has to: then the lists must still be those that were measured.
void Iterations::follow(int iteration) {
    const bool decides = iteration > 0 && (projected() || (may_give_up_ && iteration <= kDecisive));
    const bool waits = meter_ != nullptr && (decides || meter_->may_grow());
    while (awaited_ < iteration - (waits ? 0 : kAhead) && !ended()) await(++awaited_);
}

/// A graph to refine may be good already, but have rows that are not full: then it does not count as reached before
/// they are, and where it has fewer columns than are wanted, not before lists have settled.
/// \param objects  that should be measured, where more are than have been; at first the meter knows how many
void Iterations::measure(int iteration, std::int64_t objects) {
    const Stopwatch::Piece piece(meter_->watch());
    const Lists& lists = state_.lists;
    Record* const record = state_.records + iteration % (kAhead + 1);
    if (objects > 0 || !meter_->has_truth()) {
        const VectorForm form = state_.form;
        if (objects > 0)
            meter_->grow(objects, lists.ids, lists.length, lists.length);
        else
            meter_->find_truth(lists.ids, lists.length, lists.length, codes_to_sweep(state_));
        use_form(state_, form);
    }
    const u64 full = u64(state_.n) * u64(std::min<std::int64_t>(state_.params.k, state_.n - 1));
    const RecallCounts counts{iteration == 0 ? full : 0, detail::most_changed(state_.input, state_.params)};
    meter_->start(lists.ids, lists.length, lists.length, state_.stop, record, counts);
    if (projected()) meter_->count_lost(state_.points, lists, state_.stop, record);
}

/// The missing share falls by about the same factor in each iteration, until it hardly falls any more: then GNND has
/// found what it can find with lists of this length.
/// \param missing, before  the shares of true neighbours that the last two iterations left to be found
/// \param seconds          of the last one
double Iterations::seconds_left(int iteration, double missing, double before, double seconds) const {
    const double factor = missing / before, wanted = 1 - double(state_.params.recall),
                 allowed = meter_->may_be_missing();
    if (factor >= 1 || allowed <= 0) return INFINITY;
    const bool complete = state_.plan.samples >= state_.plan.length, telling = complete || iteration >= kTelling;
    // A part of the sample does not tell so little apart.
    const double most = !telling ? kShort * wanted : meter_->may_grow() ? wanted : allowed;
    const bool settles_above = (complete || from_scratch()) && settled(missing, before) > most;
    return std::log(missing / allowed) / -std::log(factor) * seconds + (settles_above ? kLongerLists * slowest_ : 0);
}

/// Of sets that GNND does not find enough of in the end the first iteration finds less than half (benchs/NOTEBOOK.md).
bool Iterations::in_vain(int iteration, double missing, double before, double seconds) const {
    const double allowed = meter_->may_be_missing();
    if (missing <= allowed) return false;
    if (before < 0)
        return allowed <= kMuch && missing > kHopelessAtFirst &&
               meter_->seconds_of_all_pairs() < kAllIterations * seconds;
    return meter_->seconds_of_all_pairs() < seconds_left(iteration, missing, before, seconds);
}

/// Of a graph that is refined or merged the first factors do not say where lists settle that hold more than samples.
bool Iterations::from_scratch() const {
    return !state_.input.refines() && !state_.input.merges();
}

/// Lists of this length will settle with far too little.
bool Iterations::settles_short(double missing, double before) const {
    if (!from_scratch() || missing >= before || missing > kHopeless) return false;
    return settled(missing, before) > kShort * (1 - double(state_.params.recall));
}

void Iterations::wait_for(int iteration) {
    const int slot = iteration % (kAhead + 1);
    cuda::await([&] { return cudaEventQuery(events_[slot]); }, "cudaEventQuery", callbacks_,
                "interrupted in iteration " + std::to_string(iteration));
    GNND_CUDA(cudaEventSynchronize(events_[slot]));
}

void Iterations::await(int iteration) {
    const int slot = iteration % (kAhead + 1);
    wait_for(iteration);
    while (records_[slot].reached < 0) {
        measure(iteration, -records_[slot].reached);
        send(slot);
        wait_for(iteration);
    }
    if (iteration == 0) check_rows(info_[0], state_.input, state_.params.metric);
    const Record& record = records_[slot];
    IterationStats here;
    here.iteration = first_ + iteration;
    here.objects = state_.n;
    here.seconds = iteration == 0 ? first_steps_.seconds() : double(record.nanoseconds - last_) * 1e-9;
    here.phi = record.sum.phi;
    here.changed = std::int64_t(record.sum.fresh);
    here.offered = std::int64_t(record.sum.offered);
    here.accepted = std::int64_t(record.sum.accepted);
    here.distances = std::int64_t(record.sum.distances);
    last_ = record.measured;
    const bool measured = iteration > 0 && record.found >= 0;
    if (measured && projected()) finer_ = meter_->lost(record) > 1 - double(state_.params.recall);
    if (measured && may_give_up_ && !finer_) {
        const double before = missing_;
        missing_ = meter_->missing(record);
        slowest_ = std::max(slowest_, here.seconds);
        if (iteration >= kTelling && missing_ < before) state_.settles = settled(missing_, before);
        // All pairs need as many iterations anyway, each of which tells more than the one before.
        const bool may_end = iteration >= detail::iterations_for_bounds(state_.params.k);
        gave_up_ = (may_end && in_vain(iteration, missing_, before, here.seconds)) ||
                   (iteration >= kTelling && settles_short(missing_, before));
    }
    converged_ = record.converged;
    reached_ = record.reached > 0;
    detail::report(here, stats_, callbacks_);
}

}  // namespace gnnd::cuda
