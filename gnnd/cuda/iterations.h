// SPDX-License-Identifier: MIT
#pragma once
/// \file iterations.h
/// The loop of a build.

#include "gnnd/builder.h"
#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/recall/recall.h"

namespace gnnd::cuda {

/// Where more of the true neighbours is missing longer lists do not help enough (benchs/NOTEBOOK.md).
inline constexpr double kHopeless = 0.2;

/// Runs steps 1 to 4 until the recall is there that was asked for, or little changes: the host stays kAhead iterations
/// before the device and reads in the meantime what it recorded, but waits for what it has to decide on.
class Iterations {
  public:
    Iterations(BuildState& state, const Callbacks& callbacks, BuildStats& stats)
        : state_(state), callbacks_(callbacks), stats_(stats), first_(int(stats.iterations.size())) {}

    /// Of a projection also until more true neighbours are lost in it than may be missing; without a meter a few times.
    /// \param meter        null: the paper's stopping rule alone
    /// \param may_give_up  also stop where comparing all pairs takes less time than what is left, or where lists will
    ///                     settle with far too little
    /// \throws InvalidArgument for a vector that no build can work with, Interrupted
    void run(RecallMeter* meter, bool may_give_up);
    /// After run() on a projection: it is what keeps the recall low, as far as that is known.
    bool needs_finer_rows() const { return finer_; }

  private:
    void begin();
    void submit(int iteration, double convergence_threshold);
    void measure(int iteration, std::int64_t objects);
    void send(int slot);
    void follow(int iteration);
    void wait_for(int iteration);
    void await(int iteration);
    double seconds_left(int iteration, double missing, double before, double seconds) const;
    bool in_vain(int iteration, double missing, double before, double seconds) const;
    bool from_scratch() const;
    bool settles_short(double missing, double before) const;
    bool projected() const { return state_.form.components != 0; }
    int most_iterations() const;
    bool ended() const { return converged_ || reached_ || gave_up_ || finer_; }

    BuildState& state_;
    const Callbacks& callbacks_;
    BuildStats& stats_;
    const int first_;  ///< number of the first record: a build may go on with longer lists
    RecallMeter* meter_ = nullptr;
    bool may_give_up_ = false;
    PinnedArray<Record, kAhead + 1> records_;
    PinnedArray<SpaceInfo, 1> info_;
    Event events_[kAhead + 1];
    u64 last_ = 0;         ///< the device's clock when the last iteration, and its measurement, ended
    int awaited_ = -1;     ///< the last iteration whose record was read
    double missing_ = -1;  ///< the share of true neighbours that the last iteration left to be found
    double slowest_ = 0;   ///< seconds of an iteration
    bool converged_ = false, reached_ = false, gave_up_ = false, finer_ = false;
    Stopwatch first_steps_{state_.stream};  ///< of iteration 0
    Drain drain_{state_.stream};            // the last member: copies into the page-locked ones end first
};

}  // namespace gnnd::cuda
