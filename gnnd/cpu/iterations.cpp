// SPDX-License-Identifier: MIT
#include "gnnd/cpu/iterations.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "gnnd/cpu/outlook.h"
#include "gnnd/detail/fits.h"
#include "gnnd/detail/report.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::cpu {
namespace {

// Chosen by measurement (benchs/NOTEBOOK.md).
/// So few objects go to all pairs whatever these cost: two iterations or so with VNNI, by the rates four to seven with
/// AVX2, and no lists can settle short of the recall.
constexpr std::int64_t kFew = 19'360;
/// Lists that may grow have settled when an iteration brings less than this share of the recall that is missing.
constexpr double kLeastGain = 0.125;
/// In the time of one distance of a sample the recall is measured on so many pairs.
constexpr double kMeasuredGain = 10;
/// What is missing takes two more iterations or so, with so many distances likewise. The recall is not measured more
/// exactly where that takes longer than another one would.
constexpr double kNextDistances = 2;

}  // namespace

Iterations::Iterations(State& state, const detail::Input& input, const Callbacks& callbacks, Clock& clock,
                       BuildStats& stats)
    : state_(state),
      input_(input),
      callbacks_(callbacks),
      clock_(clock),
      stats_(stats),
      threshold_(detail::convergence_threshold(state.params, input)),
      records_(int(stats.iterations.size())),
      most_changed_(detail::most_changed(input, state.params)),
      across_(input.merges() && !input.across) {
    if (state.params.recall > 0)
        measurement_.emplace(state.space, state.team, state.params, input.measured(), state.resources);
    if (const auto all = detail::of_all_columns(state.params); all && measurement_)
        all_columns_.emplace(state.space, state.team, *all, input.measured(), state.resources,
                             detail::kAllColumnsObjects);
    if (const auto part = detail::held_apart(input); part.count != 0 && measurement_)
        smaller_.emplace(state.space, state.team, state.params, part, state.resources, detail::kEnoughMeasured);
    set_aside_ = detail::sets_aside(input, state.params);
    const VectorView& vectors = state.space.vectors;
    const bool bytes = is_byte(vectors.dtype);
    costs_ = detail::object_costs({.n = vectors.n,
                                   .row_bytes = vectors.d * (bytes ? 1 : 4),
                                   .bytes = bytes,
                                   .k = state.params.k,
                                   .list_size = state.choices.list_size},
                                  state.space.metric);
}

void Iterations::begin() {
    if (input_.merges()) load_graphs(state_, input_);
    if (input_.refines())
        init_from_graph(state_, input_.graphs[0]);
    else if (grows_trees(state_.params.init))
        init_from_trees(state_);
    else
        init_neighbors(state_);
    report();
}

void Iterations::iterate() {
    if (!samples_) samples_.emplace(state_.lists.n(), state_.choices.samples, state_.resources);
    ++iteration_;
    ++since_growth_;
    samples_->draw(state_, iteration_);
    cross_match(state_, *samples_);
    report();
}

void Iterations::report() {
    IterationStats here = review(state_);
    here.iteration = records_ + iteration_;
    here.seconds = clock_.lap();
    changed_ = double(here.changed);
    detail::report(here, stats_, callbacks_);
}

RecallEstimate Iterations::measure(Measurement& measurement, double worth) const {
    const auto first_ids = [this](std::int32_t object, int count, std::int32_t* ids) {
        const Entry* list = state_.lists.of(object);
        for (int j = 0; j < count; ++j) ids[j] = list[j] != kEmpty ? id_of(list[j]) : -1;
    };
    return measurement.measure(first_ids, worth);
}

/// \return whether they have enough of the recall that is asked for
bool Iterations::measure_all_columns() {
    if (!all_columns_) return true;
    stats_.recall_all = measure(*all_columns_, 0);
    return stats_.recall_all.value >= all_columns_->target();
}

/// Only the mean of a few objects decides, as of all columns.
bool Iterations::smaller_reached() {
    return !smaller_ || detail::is_reached(measure(*smaller_, 0), smaller_->target());
}

bool Iterations::reached() {
    if (!measurement_ || set_aside_) return false;
    gain_ = -stats_.recall.value;
    const double samples = state_.choices.samples;
    stats_.recall = measure(*measurement_, kMeasuredGain * kNextDistances / 2 * samples * samples);
    gain_ += stats_.recall.value;
    return stats_.recall.low >= state_.params.recall && changed_ <= double(most_changed_) &&
           (iteration_ > 0 || rows_are_full()) && smaller_reached() && measure_all_columns();
}

/// A graph to refine may have rows that are not full, and what they lack counts less than their first columns.
bool Iterations::rows_are_full() const {
    const std::int64_t n = state_.lists.n(), last = std::min<std::int64_t>(state_.params.k, n - 1) - 1;
    for (std::int64_t i = 0; i < n; ++i)
        if (state_.lists.of(i)[last] == kEmpty) return false;
    return true;
}

bool Iterations::little_changes() const {
    return changed_ < threshold_ || (measurement_ && changed_ == 0);
}

bool Iterations::settled() const {
    if (since_growth_ == 0) return false;
    if (little_changes()) return true;
    return measurement_ && !set_aside_ && !longest_ && since_growth_ > 1 &&
           gain_ < kLeastGain * (state_.params.recall - stats_.recall.value);
}

/// Lists that have settled, or may not be worked on any longer. \return false where that is the end
bool Iterations::go_further() {
    const BuildParams& params = state_.params;
    further_ = true;
    if (std::exchange(set_aside_, false)) take_back(state_, input_);
    stats_.recall = measure(*measurement_, INFINITY);
    measure_all_columns();
    if (detail::is_reached(stats_.recall, params.recall) && smaller_reached()) {
        stats_.stop = StopReason::recall;
        return false;
    }
    if (sweep_across_costs_less() && sweep_across()) return false;
    search_everywhere();
    const int length = state_.lists.length();
    const int list_size = params.list_size != 0 ? length : std::min(2 * length, kMaxK);
    const int samples = params.samples != 0 ? state_.choices.samples : std::min(2 * state_.choices.samples, list_size);
    const bool grows = iteration_ < params.iterations && (list_size > length || samples > state_.choices.samples);
    if (!detail::limits_work(params) && (!grows || sweep_costs_less_than_longer(samples))) {
        if (!across_ || !sweep_across()) sweep(input_.all_pairs());
        return false;
    }
    if (!grows) {
        // A small gain asks for longer lists; where the caller forbids them these still find what they can.
        longest_ = true;
        if (iteration_ < params.iterations && !little_changes()) return true;
        stats_.stop = StopReason::recall_missed;
        return false;
    }
    grow(list_size, samples);
    return true;
}

/// Compares all pairs where a few more iterations would cost more, and the memory holds what it takes; of a merge those
/// across. \return whether that was all
bool Iterations::sweep_early() {
    if (!measurement_ || detail::limits_work(state_.params)) return false;
    if (input_.merges() ? !sweep_across_costs_less() : !sweep_costs_less()) return false;
    bool is_all = true;
    const bool fits = detail::fits([&] {
        if (input_.merges())
            is_all = sweep_across();
        else
            sweep(input_.all_pairs());
    });
    return fits && is_all;
}

bool Iterations::sweep_costs_less() const {
    const double samples = state_.choices.samples;
    const bool grown = since_growth_ != iteration_, few = state_.lists.n() <= kFew;
    const double rounds = grown ? kNextDistances * samples * samples / kOfRound : outlook();
    return few || sweep_takes_less_than(rounds);
}

/// What lists are to take that have not grown yet, in iterations.
double Iterations::outlook() const {
    const double missing = 1 - stats_.recall.value, before = missing + std::max(gain_, 0.0);
    // Nothing is known of what a given graph or random lists will find.
    if (input_.refines() || !grows_trees(state_.params.init)) return kRoundsUnseen;
    return rounds_left(iteration_, before, missing, 1 - double(state_.params.recall));
}

/// \param rounds  as outlook.h counts them
bool Iterations::sweep_takes_less_than(double rounds) const {
    return costs_.all_pairs < costs_.round * rounds;
}

bool Iterations::sweep_costs_less_than_longer(int samples) const {
    return sweep_takes_less_than(rounds_of_longer(samples, 1 - stats_.recall.value, 1 - double(state_.params.recall)));
}

/// Of a merge whose smaller set is held to the recall apart: that takes less time than another iteration. Tiles of all
/// pairs are computed whole.
bool Iterations::sweep_across_costs_less() const {
    if (!smaller_ || !across_ || set_aside_ || detail::limits_work(state_.params)) return false;
    const double n = double(state_.lists.n()), few = double(detail::held_apart(input_).count) + kTile;
    return costs_.all_pairs * 2 * few / n < costs_.round;
}

/// The pairs of a merge that no graph has seen, about half of all: what is missing is mostly among them, for the graphs
/// were held to a recall of their own. Where something else is missing lists go on as those of one set.
/// \return whether that was all
bool Iterations::sweep_across() {
    sweep(input_.pairs());
    across_ = false;
    stats_.recall = measure(*measurement_, INFINITY);
    if (detail::is_reached(stats_.recall, state_.params.recall) && smaller_reached() && measure_all_columns()) {
        stats_.stop = StopReason::recall;
        return true;
    }
    search_everywhere();
    if (state_.choices.list_size > state_.lists.length()) grow(state_.choices.list_size, state_.choices.samples);
    return false;
}

/// Of a merge, too: what is missing may be missing anywhere.
void Iterations::search_everywhere() {
    state_.pairs = {};
    threshold_ = double(state_.params.delta) * double(state_.lists.n()) * state_.params.k;
}

void Iterations::sweep(const detail::Pairs& compared) {
    Lists nearest(state_.lists.n(), state_.params.k, state_.resources);
    state_.team.for_chunks(nearest.n(), 1024, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) std::copy_n(state_.lists.of(i), state_.params.k, nearest.of(i));
    });
    std::swap(state_.lists, nearest);
    const auto pairs = std::exchange(state_.pairs, compared);
    try {
        compare_all(state_);
    } catch (...) {
        std::swap(state_.lists, nearest);
        state_.pairs = pairs;
        throw;
    }
    ++iteration_;
    report();
    stats_.stop = StopReason::exact;
}

/// Random objects in the new places start the search for what no entry leads to.
void Iterations::grow(int list_size, int samples) {
    const int before = state_.lists.length();
    Lists longer(state_.lists.n(), list_size, state_.resources);
    state_.team.for_chunks(longer.n(), 1024, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) std::copy_n(state_.lists.of(i), before, longer.of(i));
    });
    state_.lists = std::move(longer);
    state_.choices.list_size = list_size;
    state_.choices.samples = samples;
    samples_.reset();
    add_random(state_, list_size - before, std::uint64_t(iteration_));
    since_growth_ = 0;
}

/// Once the lists have settled they are good as they are, where the memory does not hold longer ones, or what comparing
/// all pairs takes.
template <class Step>
bool Iterations::holds(const Step& step) {
    const auto stop = [&] {
        if (!further_ || stats_.recall.objects == 0) throw;
        stats_.stop = StopReason::recall_missed;
        return false;
    };
    try {
        return step();
    } catch (const std::bad_alloc&) {
        return stop();
    } catch (const OutOfWorkMemory&) {
        return stop();
    }
}

void Iterations::run() {
    begin();
    for (;;) {
        if (reached()) {
            stats_.stop = StopReason::recall;
            break;
        }
        if (sweep_early()) break;
        const bool last = iteration_ >= state_.params.iterations;
        if (last || settled()) {
            if (!measurement_) {
                stats_.stop = settled() ? StopReason::converged : StopReason::iterations;
                break;
            }
            if (!holds([&] { return go_further(); })) break;
        }
        if (!holds([&] { return iterate(), true; })) break;
    }
    if (set_aside_) take_back(state_, input_);
    for (const auto* measured : {&measurement_, &all_columns_, &smaller_})
        if (*measured) stats_.recall_seconds += (*measured)->seconds();
    stats_.choices = state_.choices;
}

}  // namespace gnnd::cpu
