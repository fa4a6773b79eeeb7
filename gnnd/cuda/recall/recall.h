// SPDX-License-Identifier: MIT
#pragma once
/// \file recall.h
/// A build measures itself: the true neighbours of a sample of objects, found by comparing it with all vectors, against
/// what the lists have of them.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/runtime/stopwatch.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "gnnd/detail/recall.h"

namespace gnnd::cuda {

/// The vectors of a build for a sweep, which packs them as it wants them. Whoever goes on then calls use_form().
/// \param taken  bytes of the spare memory that others have taken
SweepSpace sweep_space_of(BuildState& state, std::size_t taken = 0);
/// The codes that the rows are, where a sweep can begin with them.
std::optional<SweepForm> codes_to_sweep(const BuildState& state);

/// Sums over the sample, made by the device.
struct RecallSums {
    double missed[detail::RecallCount::kPowers];  ///< as there
    /// The same of true neighbours that a projection takes for farther than an object's last one in its list.
    double lost[detail::RecallCount::kPowers];
};

/// The conditions under which a recall that is reached ends a run.
struct RecallCounts {
    u64 least_entries = 0;          ///< with so many entries among the first k of all lists
    u64 most_changed = UINT64_MAX;  ///< with at most so many NEW ones, see detail::most_changed()
};

class RecallMeter {
  public:
    /// \param part    the objects that are measured
    /// \param sample  so many of them, or all if there are fewer
    /// \param watch   gets what all of its work takes
    /// \param first   so many of them, drawn as the sample is, are measured until it grows
    RecallMeter(const SweepSpace& space, const BuildParams& params, const detail::ObjectRange& part,
                std::int64_t sample, Resources& resources, Stopwatch& watch, cudaStream_t stream,
                std::int64_t first = detail::kAnyNumber);
    /// Of a build: beside the columns that count all of them, of the first of the objects.
    RecallMeter(BuildState& state, Stopwatch& watch);

    /// Finds the true neighbours of the first objects, once; waits for the stream. The nearer the given neighbours are
    /// the faster.
    /// \param ids    device: n x stride, of which the first `width` are looked at
    /// \param codes  are compared first
    void find_truth(const u32* ids, int stride, int width, std::optional<SweepForm> codes = {});
    bool has_truth() const { return counted_ != 0; }
    /// Likewise of others, of which there are some: `count` are measured from then on, or all.
    void grow(std::int64_t count, const u32* ids, int stride, int width);
    bool may_grow() const { return has_truth() && counted_ < sampled_; }

    /// Starts to compare the ids with the truth: n x stride, the first `width` of each.
    /// \param record   where the sums go. If the lower end of their interval has reached the recall that was asked for,
    ///                 the stop flag is raised, where it counts and all columns have enough of it; if it has not, but
    ///                 might with more objects, the record says how many. Null: nowhere
    void start(const u32* ids, int stride, int width, StopFlag* stop = nullptr, Record* record = nullptr,
               const RecallCounts& counts = {});
    /// Counts, behind start(), the true neighbours that are not in lists of a projection since it takes them for
    /// farther than the last entry: these no iteration will find. Where only more objects tell whether they are too
    /// many the record says that, too. \param points  of the projection
    void count_lost(const Points& points, const Lists& lists, StopFlag* stop, Record* record);
    /// Their share, of what was counted with this record.
    double lost(const Record& record) const { return record.lost / (double(counted_) * at_); }
    /// Of what was started last; waits for the stream.
    RecallEstimate estimate() { return estimate(none_missed(), 0); }
    /// The same of all columns; of no objects where they are not measured apart.
    RecallEstimate estimate_all();
    /// The share of true neighbours that are missing, of what was started with this record.
    double missing(const Record& record) const { return 1 - record.found / (double(counted_) * at_); }

    /// So much may be missing at most for all objects of the sample to show the recall that was asked for.
    double may_be_missing() const { return detail::missing_that_shows(wanted_, sampled_, part_.count); }

    /// The form of numbers in which all pairs are compared, as finding the truth has told.
    SweepForm form_of_all_pairs() const { return sweep_.form_of_all(); }
    /// Bytes that it has taken of the spare memory.
    std::size_t taken() const { return sweep_.bytes_of_split(); }
    Stopwatch& watch() const { return watch_; }
    /// Comparing all pairs would take about so long: what rates say, but no less than the pairs alone would at the pace
    /// of find_truth(), and no more than this tells of all.
    double seconds_of_all_pairs() const;
    /// \param rates  seconds of all pairs in a form where so many neighbours are wanted; 0: there are none
    void predict_all_pairs(std::function<double(SweepForm form, int k)> rates) { rates_ = std::move(rates); }

    /// Device memory that it takes for so many objects.
    static std::size_t bytes(const SweepSpace& shape, const BuildParams& params, std::int64_t sample);
    /// The same of a build's, for a sample of `count` objects.
    static std::size_t bytes_of_build(const SweepSpace& shape, const BuildParams& params, std::int64_t count);

  private:
    RecallMeter(const SweepSpace& space, const BuildParams& params, const std::optional<BuildParams>& all,
                const detail::ObjectRange& part, std::int64_t sample, Resources& resources, Stopwatch& watch,
                cudaStream_t stream, std::int64_t first);

    detail::RecallCount none_missed() const { return {part_.count, counted_, at_}; }
    /// \param sums  which of them
    RecallEstimate estimate(detail::RecallCount count, int sums);
    void count_found(const u32* ids, int stride, int width, const float* bounds, std::int64_t objects, int at,
                     RecallSums* sums);

    const SweepSpace space_;
    const double wanted_;
    cudaStream_t stream_;
    int at_;
    const detail::ObjectRange part_;  ///< that the sample is of
    const std::int64_t sampled_;      ///< objects of it
    const std::int64_t first_;        ///< that are measured at first
    const std::int64_t whole_;        ///< that all columns are measured on; 0: they are not
    const double wanted_of_all_;
    std::int64_t counted_ = 0;  ///< that are measured
    const std::uint64_t seed_;
    std::vector<std::int32_t> objects_;  ///< those that are measured come first
    Sweep sweep_;
    DeviceMemory memory_;
    u32* numbers_;  ///< device: the objects
    Lists truth_;   ///< of those that are measured the true neighbours' ids and bounds
    float* bounds_of_all_;
    RecallSums* sums_;  ///< two: of what counts, and of all columns
    Stopwatch& watch_;
    std::function<double(SweepForm, int)> rates_;  ///< see predict_all_pairs()
    SweepPace pace_;                               ///< of the first objects
    double predicted_ = 0, more_ = 0;              ///< by rates: all pairs, and of it what more neighbours take
    PinnedArray<RecallSums, 1> here_;
    Drain drain_;
};

}  // namespace gnnd::cuda
