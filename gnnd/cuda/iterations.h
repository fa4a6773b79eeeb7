// SPDX-License-Identifier: MIT
#pragma once
/// \file iterations.h
/// The loop of a build.

#include <chrono>

#include "gnnd/builder.h"
#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/memory/memory.h"

namespace gnnd::cuda {

/// Runs steps 1 to 4 until little changes: the host stays kAhead iterations before the device and reads in the meantime
/// what it recorded.
class Iterations {
  public:
    Iterations(BuildState& state, const Callbacks& callbacks, BuildStats& stats)
        : state_(state), callbacks_(callbacks), stats_(stats) {}

    /// \throws InvalidArgument for a vector that no build can work with, Interrupted
    void run();

  private:
    void submit(int iteration, double convergence_threshold);
    void await(int iteration);

    BuildState& state_;
    const Callbacks& callbacks_;
    BuildStats& stats_;
    PinnedArray<Record, kAhead + 1> records_;
    PinnedArray<SpaceInfo, 1> info_;
    Event events_[kAhead + 1];
    u64 last_ = 0;  ///< the device's clock when the last iteration ended
    bool converged_ = false;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    Drain drain_{state_.stream};  // the last member: copies into the page-locked ones end first
};

}  // namespace gnnd::cuda
