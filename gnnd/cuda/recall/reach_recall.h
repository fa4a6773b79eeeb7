// SPDX-License-Identifier: MIT
#pragma once
/// \file reach_recall.h
/// A build's last resorts when its lists have converged, or hardly improve, below the recall that was asked for.

#include "gnnd/cuda/recall/recall.h"

namespace gnnd::cuda {

/// The bytes that are taken beside the plan of a build, to measure the recall, if any is asked for.
std::size_t bytes_beside(const detail::Input& input, const InPlace& in_place, const BuildParams& params);
/// And those in it, to compare all pairs, where that is asked for or the recall may come to it.
std::size_t bytes_of_all_pairs(const detail::Input& input, const InPlace& in_place, const BuildParams& params);

/// Step 5 for all that a state holds.
/// \param width  so many entries of each list are looked at; at least k
void finish(const BuildState& state, int width);

/// True where neither the user's parameters nor the memory forbid it.
bool may_compare_all_pairs(const BuildState& state);

/// Makes the graph exact, by comparing all pairs against the last distances of what is there.
/// \param meter  null: none
void compare_all_pairs(BuildState& state, const RecallMeter* meter, const Callbacks& callbacks, BuildStats& stats);

/// Measures the graph. While it has less recall than was asked for: goes on from its lists with longer ones, or
/// compares all pairs, whichever is predicted to take less time; neither where the user's parameters set limits.
void reach_recall(BuildState& state, RecallMeter& meter, const Callbacks& callbacks, BuildStats& stats);

}  // namespace gnnd::cuda
