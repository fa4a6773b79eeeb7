// SPDX-License-Identifier: MIT
#pragma once
/// \file tune_steps.h
/// The walk of tune() through the settings: what lies next to one, which are on the front, and which one is left next.

#include <functional>
#include <vector>

#include "gnnd/tune.h"

namespace gnnd::detail {

/// The parameters that the caller has set by hand, and the limits of the device.
struct TuneLimits {
    BuildParams given;
    bool inits = true;  ///< another init may be tried
    int most_samples = kMaxK;

    bool fixes_samples() const { return given.samples != 0; }
    bool fixes_list_size() const { return given.list_size != 0; }
    bool fixes_trees() const { return given.trees != 0; }
};

/// Steps that find more, that take less time, or all.
enum class TuneSteps { more, less, all };

/// The settings one step from a measured one: samples, list_size, or both more or fewer, one iteration more or less;
/// and whichever way is wanted, more and fewer trees and the other init. Those that equal it are among them, where a
/// limit forbids the step.
std::vector<BuildParams> steps_from(const BuildParams& setting, const TuneRun& run, const TuneLimits& limits,
                                    TuneSteps wanted = TuneSteps::all);

/// True where both mean the same builds.
bool same_setting(const BuildParams& a, const BuildParams& b);

/// The share that is missing from a recall of 1, at least what a sample of so many neighbours can tell.
double missing_of(const RecallEstimate& recall);

/// The price of a run, by which runs are compared.
using CostOf = std::function<double(const TuneRun&)>;

/// The positions of the runs that are on the front of cost and recall: none with less recall than a cheaper one, of
/// equal ones the first. By cost, ascending. \param runs  those of no rows are passed over
std::vector<int> front_of(const std::vector<TuneRun>& runs, const CostOf& cost);

/// Of these positions those whose `missing` is nearest to the aim, by its ratio, come first.
void nearest_first(std::vector<int>& positions, const std::vector<TuneRun>& runs, double missing);

}  // namespace gnnd::detail
