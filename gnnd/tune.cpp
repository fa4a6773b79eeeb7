// SPDX-License-Identifier: MIT
#include "gnnd/tune.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/fits.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/detail/tune_choice.h"
#include "gnnd/detail/tune_predict.h"
#include "gnnd/detail/tune_runs.h"
#include "gnnd/detail/tune_steps.h"
#include "gnnd/error.h"

namespace gnnd {
namespace {

using detail::fits;
using detail::TuneRuns;

/// Of the settings on the front so many are built of the larger sample, and so often: the least time counts.
constexpr int kFinalists = 8, kRounds = 2;
/// After so many new settings of the walk the nearest to the aim is built of the larger sample, too, to see how much
/// less recall it has there.
constexpr int kLookEvery = 6;
/// So many settings are built until they have the recall asked for.
constexpr int kCandidates = 3;
/// All pairs that are predicted to take less than so many times the default's time are compared of the larger sample,
/// too, before others are tried.
constexpr double kMayWin = 3;
/// Of TuneParams::seconds, from the start: until when the default is built of the larger sample, and until when others
/// are of the smaller one.
constexpr double kUntilDefault = 0.3, kUntilWalk = 0.6;

class Tuning {
  public:
    Tuning(const VectorView& vectors, const BuildParams& params, const TuneParams& how, const TuneCallbacks& callbacks,
           Resources* resources)
        : runs_(vectors, params, how, callbacks, resources),
          result_(runs_.result()),
          given_(params),
          how_(how),
          limits_{params, how.inits && params.init == BuildParams{}.init,
                  result_.device.kind == Device::Kind::cuda ? kMaxGpuSamples : kMaxK} {}

    TuneResult run() {
        if (runs_.exhaustive())
            complete([&] { runs_.measure(all_pairs(), TuneRuns::first); }, 1);
        else
            try_settings();
        if (result_.records.empty())
            throw InvalidArgument("TuneParams::seconds = " + detail::text_of(float(how_.seconds)) +
                                  ", allowed are more: not one build of " + std::to_string(runs_.first_rows()) +
                                  " rows, with its true neighbours, was done in them");
        detail::predict(result_);
        detail::choose(result_, given_);
        detail::mark_front(result_);
        return runs_.take_result();
    }

  private:
    void try_settings() {
        const bool two = result_.small_rows != 0;
        complete([&] { runs_.measure(runs_.standard(), TuneRuns::first); }, 1);
        if (result_.records.empty()) return;
        complete([&] { runs_.measure_again(0, TuneRuns::first); }, kUntilDefault);  // what started slowly
        if (two) complete([&] { runs_.measure_again(0, TuneRuns::larger); }, kUntilDefault);
        if (may_compare_all()) complete([&] { look_at_all_pairs(); }, kUntilWalk);
        detail::predict(result_);
        complete([&] { walk(); }, kUntilWalk);
        complete([&] { compare(); }, 1);
        detail::predict(result_);
        complete([&] { reach(); }, 1);
    }

    /// Calls f, which may run out of its share of the time. \return false where it did
    template <class F>
    void complete(F&& f, double share) {
        if (!runs_.within(share, f)) result_.complete = false;
    }

    detail::CostOf cost() const {
        // An iteration does the same on any day on the CPU; on a GPU distances are not what takes the time.
        if (result_.device.kind == Device::Kind::cuda) return [](const TuneRun& run) { return run.seconds; };
        return [](const TuneRun& run) { return double(run.distances); };
    }

    /// The share that may be missing on that many rows, for the recall asked for to be there on all.
    double aim(std::int64_t rows) const {
        const float recall = given_.recall > 0 && given_.recall < 1 ? given_.recall : BuildParams{}.recall;
        return (1 - recall) * std::pow(double(rows) / double(result_.n), result_.miss_exponent);
    }

    std::vector<TuneRun> runs(TuneRuns::Size size) const {
        std::vector<TuneRun> all;
        for (const TuneRecord& record : result_.records)
            all.push_back(record.params.recall != 0 ? TuneRun{} : runs_.run_of(record, size));
        return all;
    }

    /// Positions in the records: the front, that which is nearest to the aim first.
    std::vector<int> best(TuneRuns::Size size) const {
        const std::vector<TuneRun> all = runs(size);
        std::vector<int> front = detail::front_of(all, cost());
        detail::nearest_first(front, all, aim(runs_.rows_of(size)));
        return front;
    }

    /// First towards the aim, from both sides; then wherever a step leads.
    void walk() {
        for (const bool aimed : {true, false}) {
            std::vector<bool> expanded(std::size_t(how_.settings) + 1, false);  // all pairs are none of the settings
            for (;;) {
                const std::vector<int> front = best(TuneRuns::first);
                const auto next =
                    std::find_if(front.begin(), front.end(), [&](int i) { return !expanded[std::size_t(i)]; });
                if (next == front.end()) break;
                expanded[std::size_t(*next)] = true;
                expand(*next, aimed);
                if (settings() >= how_.settings) return;
            }
        }
    }

    /// Settings that were tried: all pairs are none.
    int settings() const {
        return int(std::count_if(result_.records.begin(), result_.records.end(),
                                 [](const TuneRecord& record) { return !detail::all_pairs(record); }));
    }

    void expand(int position, bool aimed) {
        const TuneRecord from = result_.records[std::size_t(position)];  // which moves as there are more
        const TuneRun& run = runs_.run_of(from, TuneRuns::first);
        const bool misses = detail::missing_of(run.recall) > aim(run.rows);
        const auto wanted = !aimed   ? detail::TuneSteps::all
                            : misses ? detail::TuneSteps::more
                                     : detail::TuneSteps::less;
        for (const BuildParams& step : steps_from(from.params, run, limits_, wanted)) {
            if (settings() >= how_.settings) return;
            if (known(step) || runs_.compares_all(step)) continue;
            if (!fits([&] { runs_.measure(step, TuneRuns::first); }))
                too_large_.push_back(step);
            else if (settings() % kLookEvery == 0)
                look_at_larger();
        }
    }

    void measure_larger(int position) {
        fits([&] { runs_.measure_again(position, TuneRuns::larger); });
    }

    void look_at_larger() {
        const int nearest = best(TuneRuns::first).front();
        if (result_.records[std::size_t(nearest)].large.rows == 0) measure_larger(nearest);
        detail::predict(result_);
    }

    bool known(const BuildParams& params) const {
        const auto same = [&](const BuildParams& other) { return detail::same_setting(other, params); };
        return std::any_of(too_large_.begin(), too_large_.end(), same) ||
               std::any_of(result_.records.begin(), result_.records.end(),
                           [&](const TuneRecord& record) { return same(record.params); });
    }

    /// The settings near the aim on the larger sample; round by round, so that what slows the machine down for a while
    /// slows all of them.
    void compare() {
        std::vector<int> finalists = best(TuneRuns::first);
        if (finalists.size() > kFinalists) finalists.resize(kFinalists);
        if (std::find(finalists.begin(), finalists.end(), 0) == finalists.end()) finalists.push_back(0);
        const auto measure = [&] {
            for (const int i : finalists) {
                if (result_.small_rows != 0) runs_.measure_again(i, TuneRuns::first);
                measure_larger(i);
            }
        };
        measure();
        if (may_compare_all()) measure_all_pairs();
        for (int round = 1; round < kRounds; ++round) {
            measure();
            if (const int i = record_of_all_pairs(); i >= 0) measure_larger(i);
        }
    }

    bool may_compare_all() const { return given_.recall == 1 || !detail::limits_work(given_); }

    BuildParams all_pairs() const {
        BuildParams params = given_;
        params.recall = 1;
        return params;
    }

    /// -1 where they were not compared yet.
    int record_of_all_pairs() const {
        const auto at = std::find_if(result_.records.begin(), result_.records.end(),
                                     [](const TuneRecord& record) { return detail::all_pairs(record); });
        return at != result_.records.end() ? int(at - result_.records.begin()) : -1;
    }

    /// On the smaller sample, which costs little; before the walk to settings, which may take all of the time, also on
    /// the larger one where they may win: the default by the paper's stop may lack much of what is asked for.
    void look_at_all_pairs() {
        if (!fits([&] { runs_.measure(all_pairs(), TuneRuns::first); }) || result_.small_rows == 0) return;
        const int position = int(result_.records.size()) - 1;
        fits([&] { runs_.measure_again(position, TuneRuns::first); });  // anything else may have doubled milliseconds
        const double ratio = double(result_.large_rows) / double(result_.small_rows);
        const TuneRun& of_default = result_.records.front().large;
        if (of_default.rows != 0 &&
            result_.records[std::size_t(position)].small.seconds * ratio * ratio < kMayWin * of_default.seconds)
            measure_larger(position);
    }

    void measure_all_pairs() {
        if (record_of_all_pairs() < 0) look_at_all_pairs();
        const int i = record_of_all_pairs();
        if (i >= 0 && result_.records[std::size_t(i)].large.rows == 0) measure_larger(i);
    }

    /// Builds with the recall asked for, of those lists that are predicted to get there in the least time.
    void reach() {
        if (given_.recall == 0 || given_.recall == 1) return;
        std::vector<TuneRecord> candidates;
        for (const int i : detail::by_price(result_, given_.recall))
            if (const TuneRecord& record = result_.records[std::size_t(i)]; !detail::all_pairs(record))
                if (std::none_of(candidates.begin(), candidates.end(), [&](const TuneRecord& other) {
                        return detail::same_lists(other.params, record.params);
                    }))
                    candidates.push_back(record);
        if (candidates.size() > kCandidates) candidates.resize(kCandidates);
        const int first = int(result_.records.size());
        for (TuneRecord& candidate : candidates) {
            candidate.params.recall = given_.recall;
            candidate.params.iterations = given_.iterations;
            fits([&] { runs_.measure(candidate.params, TuneRuns::larger); });
        }
        for (int round = 1; round < kRounds; ++round)
            for (int i = first; i < std::ssize(result_.records); ++i) measure_larger(i);
    }

    TuneRuns runs_;
    TuneResult& result_;
    BuildParams given_;
    TuneParams how_;
    detail::TuneLimits limits_;
    std::vector<BuildParams> too_large_;  ///< for the memory
};

}  // namespace

void TuneParams::validate() const {
    const auto check = [](const char* field, auto value, auto low, auto high) {
        detail::check_range("TuneParams", field, value, low, high);
    };
    if (rows != 0) check("rows (0: chosen)", rows, std::int64_t(2), kMaxObjects);
    check("objects", objects, std::int64_t(1), kMaxObjects);
    check("settings", settings, 1, 10000);
    check("seconds", seconds, 0.0, 1e9);
}

TuneResult tune(const VectorView& vectors, const BuildParams& params, const TuneParams& how,
                const TuneCallbacks& callbacks, Resources* resources) {
    return Tuning(vectors, params, how, callbacks, resources).run();
}

}  // namespace gnnd
