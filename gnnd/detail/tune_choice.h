// SPDX-License-Identifier: MIT
#pragma once
/// \file tune_choice.h
/// The choice of tune() among the settings that it has tried.

#include <vector>

#include "gnnd/tune.h"

namespace gnnd::detail {

/// True where both make lists of the same kind, however many iterations they take and whatever recall is asked for.
bool same_lists(const BuildParams& a, const BuildParams& b);

/// Positions of the records that are expected to have the recall, the cheapest first. Where some were built of the
/// larger sample, of these only. A recall of 1 is expected of all pairs alone.
std::vector<int> by_price(const TuneResult& result, float recall);

/// Sets what the result says of the setting for the recall asked for: its params, `chosen` and `reaches`.
/// \param given  the caller's parameters; of a recall of 0 nothing is chosen
void choose(TuneResult& result, const BuildParams& given);

/// Marks the records on the front of time and recall, on the larger sample where anything was built of it.
void mark_front(TuneResult& result);

}  // namespace gnnd::detail
