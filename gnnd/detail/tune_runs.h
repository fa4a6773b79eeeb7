// SPDX-License-Identifier: MIT
#pragma once
/// \file tune_runs.h
/// The builds that tune() makes: of which samples, until when, and what was measured.

#include <chrono>
#include <optional>

#include "gnnd/detail/tune_sample.h"
#include "gnnd/tune.h"

namespace gnnd::detail {

class TuneRuns {
  public:
    /// The smaller sample (or, where there is one only, this one), and the larger one.
    enum Size { first, larger };

    /// Checks the arguments and decides how large the samples are; nothing is read yet. \throws as tune()
    TuneRuns(const VectorView& vectors, const BuildParams& params, const TuneParams& how,
             const TuneCallbacks& callbacks, Resources* resources);

    /// True where a build of all vectors compares all pairs, whatever it measures.
    bool exhaustive() const { return exhaustive_; }
    /// The parameters that a build of all vectors starts with, with `recall` 0.
    const BuildParams& standard() const { return standard_; }
    /// True where so few vectors as the smaller sample has are compared pair by pair with these parameters.
    bool compares_all(const BuildParams& params) const { return compares_all(params, first_rows()); }

    /// Builds with parameters that no record has, and adds one.
    void measure(const BuildParams& params, Size size);
    /// Builds with those of the record, once more or of another sample; the least time counts.
    void measure_again(int record, Size size);

    /// Calls f, and ends it when this share of TuneParams::seconds has passed since the start. \return false then
    template <class F>
    bool within(double share, F&& f) {
        until_ = share;
        try {
            f();
        } catch (const OutOfTime&) {
            return false;
        }
        return true;
    }

    std::int64_t first_rows() const { return rows_of(first); }
    std::int64_t rows_of(Size size) const {
        return size == first && result_.small_rows != 0 ? result_.small_rows : result_.large_rows;
    }
    const TuneRun& run_of(const TuneRecord& record, Size size) const {
        return size == first && result_.small_rows != 0 ? record.small : record.large;
    }

    TuneResult& result() { return result_; }
    /// With the seconds until now.
    TuneResult take_result();

  private:
    struct OutOfTime {};

    bool compares_all(const BuildParams& params, std::int64_t rows) const;
    std::int64_t least_rows(const BuildParams& params) const;
    void choose_rows();
    TuneRun build_of(const BuildParams& params, Size size);
    TuneSample& sample(Size size);
    double elapsed() const;
    Callbacks hooks();
    template <class F>
    auto in_time(F&& f);

    const VectorView& vectors_;
    const BuildParams& given_;
    const TuneParams& how_;
    const TuneCallbacks& callbacks_;
    Resources* resources_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double until_ = 1;  ///< the share of the time that is given now
    bool exhaustive_ = false;
    BuildParams standard_;
    TuneResult result_;
    std::optional<TuneSample> samples_[2];
};

}  // namespace gnnd::detail
