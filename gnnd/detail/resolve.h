// SPDX-License-Identifier: MIT
#pragma once
/// \file resolve.h
/// The choices that follow from parameters, sizes and the kind of device alone: both backends start from them. Others
/// are made where more is known:
///  - by a GPU's memory and predicted times, before a build, in cuda/build.cu: plan_gnnd() asks here again with a lower
///    recall where lists as long as a high one wants do not fit, `decided` turns the choice into comparing all pairs;
///  - by the recall that was measured, during a build: cpu/iterations.cpp and cuda/recall/reach_recall.cu let lists
///    grow or compare all pairs.
/// BuildStats::choices has what was chosen in the end.

#include "gnnd/detail/input.h"
#include "gnnd/params.h"
#include "gnnd/stats.h"

namespace gnnd::detail {

/// True where the caller has set by hand how long lists are, or how many samples and iterations there are.
bool limits_lists(const BuildParams& params);

/// True where the caller has set a limit to the work by hand: one of these, or the number of trees.
bool limits_work(const BuildParams& params);

/// Of a merge the set that has less than half as many objects as the other: what these lack hardly shows in the recall
/// of both together, so that they are held to it apart. None where shards of one set are merged, which are alike.
ObjectRange held_apart(const Input& input);

/// From so high a recall on a GPU's lists and samples are so long that three iterations find what five with half of
/// them hardly do. Chosen by measurement (benchs/NOTEBOOK.md).
inline constexpr float kHighRecall = 0.9985F;

/// The choices for a run of this input. On a GPU its plan may lower `capacity`, and raise `passes`, to fit the memory.
/// \param device  chosen: cpu or cuda
/// \throws InvalidArgument for more samples than the device takes
Choices resolve(const BuildParams& params, const Input& input, const Device& device);

}  // namespace gnnd::detail
