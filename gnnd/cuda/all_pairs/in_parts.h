// SPDX-License-Identifier: MIT
#pragma once
/// \file in_parts.h
/// All pairs of a set that the device does not hold, in parts. The graph of each part is made exact by itself. Then
/// every two parts meet on the device: pairs across are compared, once, against the last distances of both graphs, and
/// what is nearer is folded into the rows of the whole, on the host. Vectors are read where they lie, a mapped file
/// too, each part as often as there are parts.

#include <cstddef>
#include <functional>

#include "gnnd/builder.h"
#include "gnnd/cuda/all_pairs/exact_plan.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// Vectors and graph are those of two parts.
struct PartsPlan : ExactPlan {
    int count = 0;          ///< parts
    std::int64_t rows = 0;  ///< of a part, at most
};

/// The fewest parts that fit.
/// \param alone  bytes that the exact graph of one set takes; throws OutOfDeviceMemory where it does not fit
/// \throws OutOfDeviceMemory where parts would have to be so small that they are compared on the host
PartsPlan plan_parts(const detail::Input& input, const BuildParams& params, std::size_t free,
                     const std::function<std::size_t(const detail::Input&)>& alone);

/// The exact graph. Arguments as those of build() in build.h, which makes the graphs of the parts.
void compare_in_parts(const detail::Input& input, const PartsPlan& plan, const BuildParams& params,
                      const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances,
                      BuildStats& stats);

}  // namespace gnnd::cuda
