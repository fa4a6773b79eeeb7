// SPDX-License-Identifier: MIT
#pragma once
/// \file from_nothing.h
/// The exact graph of a set without a graph before: Sweep::find_exact(), where that takes less time than lists to
/// compare all pairs against.

#include <cstddef>

#include "gnnd/builder.h"
#include "gnnd/cuda/all_pairs/exact_plan.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// True of sets that may be compared so, if it takes less time.
bool may_compare_from_nothing(const detail::Input& input, const BuildParams& params);

/// \param vectors_there, result_there  on the device
/// \throws OutOfDeviceMemory where it does not fit
ExactPlan plan_from_nothing(const detail::Input& input, bool vectors_there, bool result_there,
                            const BuildParams& params, std::size_t free);

/// Arguments as those of build() in build.h.
/// \return false where it cannot be: see Sweep::find_exact()
bool compare_from_nothing(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                          Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats);

}  // namespace gnnd::cuda
