// SPDX-License-Identifier: MIT
#pragma once
/// \file recall.h
/// A build measures itself: the true neighbours of a sample of objects, found by comparing it with all vectors, against
/// what the lists have of them.

#include <vector>

#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"

namespace gnnd::cuda {

/// What the device sums up over the sample.
struct RecallSums {
    double found, squares;  ///< of each object how many of its true neighbours are there, and of that the square
};

class RecallMeter {
  public:
    explicit RecallMeter(const BuildState& state);

    /// Finds the true neighbours, once; waits for the stream. The nearer the given neighbours are the faster.
    /// \param ids  device: n x stride, of which the first `width` are looked at
    void find_truth(const u32* ids, int stride, int width);
    bool has_truth() const { return truth_.ids != nullptr; }

    /// Starts to compare the ids with the truth: n x stride, the first `width` of each.
    /// \param record  where the sums go. If the lower end of their interval has reached the recall that was asked for,
    ///                the stop flag is raised. Null: nowhere
    void start(const u32* ids, int stride, int width, StopFlag* stop = nullptr, Record* record = nullptr);
    /// Of what was started last; waits for the stream.
    RecallEstimate estimate();
    /// Of what was started with this record.
    RecallEstimate estimate_of(const Record& record) const;

    double seconds() const { return seconds_; }  ///< that find_truth() took
    /// Comparing all pairs would take about so long.
    double seconds_of_all_pairs() const;

    /// Device memory that it takes.
    static std::size_t bytes(const detail::Input& input, const BuildParams& params, const VectorForm& form);

  private:
    const BuildState& state_;
    int at_;
    std::vector<std::int32_t> objects_;
    Sweep sweep_;
    Lists truth_{};
    DeviceMemory memory_;
    u32* numbers_;  ///< device: the objects
    RecallSums* sums_;
    double seconds_ = 0;
    PinnedArray<RecallSums, 1> here_;
    Drain drain_;
};

/// The vectors of a build for a sweep.
SweepSpace sweep_space_of(const BuildState& state);

}  // namespace gnnd::cuda
