// SPDX-License-Identifier: MIT
#pragma once
/// \file iterations.h
/// The loop of a build, and when it ends.

#include <chrono>
#include <optional>

#include "gnnd/builder.h"
#include "gnnd/cpu/recall.h"
#include "gnnd/cpu/steps.h"
#include "gnnd/detail/input.h"
#include "gnnd/detail/predict.h"

namespace gnnd::cpu {

class Clock {
  public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
    /// Seconds since the last call.
    double lap() {
        const double now = seconds(), last = last_;
        last_ = now;
        return now - last;
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double last_ = 0;
};

/// Runs steps 1 to 4 on the lists of a state. Where no recall is asked for, until little changes. Otherwise until the
/// recall is there: lists that have settled below it become longer and more of them are sampled, or all pairs are
/// compared where that is predicted to cost less, be it before the lists settle; what the caller has set by hand is not
/// exceeded. All decisions follow from counts and from rates that were measured once, none from clocks: a seed gives
/// the same graph every time.
class Iterations {
  public:
    /// \param stats  gets a record for each iteration, numbered after those that it has
    Iterations(State& state, const detail::Input& input, const Callbacks& callbacks, Clock& clock, BuildStats& stats);

    void run();

  private:
    void begin();
    void iterate();
    void report();
    RecallEstimate measure(Measurement& measurement, double worth) const;
    bool measure_all_columns();
    bool smaller_reached();
    bool reached();
    bool rows_are_full() const;
    bool little_changes() const;
    bool settled() const;
    bool go_further();
    double outlook() const;
    bool sweep_early();
    bool sweep_takes_less_than(double rounds) const;
    bool sweep_costs_less() const;
    bool sweep_costs_less_than_longer(int samples) const;
    bool sweep_across_costs_less() const;
    bool sweep_across();
    void search_everywhere();
    void sweep(const detail::Pairs& compared);
    void grow(int list_size, int samples);
    /// \return what the step returns; false, the end, where it finds too little memory
    template <class Step>
    bool holds(const Step& step);

    State& state_;
    const detail::Input& input_;
    const Callbacks& callbacks_;
    Clock& clock_;
    BuildStats& stats_;
    std::optional<Measurement> measurement_;  ///< where a recall is asked for
    std::optional<Measurement> all_columns_;  ///< where it counts fewer
    std::optional<Measurement> smaller_;      ///< of a merge, where the smaller set is held to the recall apart
    std::optional<Samples> samples_;
    double threshold_;    ///< with fewer NEW entries the lists have settled
    double changed_ = 0;  ///< NEW entries after the last iteration
    double gain_ = 0;     ///< in recall, of the last iteration
    detail::ObjectCosts costs_;
    int records_;                 ///< that there were before
    std::uint64_t most_changed_;  ///< with more NEW entries a recall that is reached does not end them
    int iteration_ = 0;           ///< the last one that ran
    int since_growth_ = 0;        ///< iterations with lists of this length
    bool further_ = false;        ///< the lists have settled once
    bool longest_ = false;        ///< the lists may not grow any more: only that little changes ends them
    bool across_;                 ///< of a merge: pairs of both sets are left to compare
    bool set_aside_ = false;      ///< of a merge: columns are not in the lists, which say nothing of the recall
};

}  // namespace gnnd::cpu
