// SPDX-License-Identifier: MIT
#pragma once
/// \file resolve.h
/// The one place that decides what parameters leave open.

#include "gnnd/detail/input.h"
#include "gnnd/params.h"
#include "gnnd/stats.h"

namespace gnnd::detail {

/// On the CPU so many pairs take the time of one of GNND's distances where all are compared, tile by tile.
inline constexpr double kSweepGain = 5;

/// True where the caller has set a limit to the work by hand.
bool limits_work(const BuildParams& params);

/// The choices for a run of this input. On a GPU its plan may lower `capacity`, and raise `batches`, to fit the memory.
/// \param device  chosen: cpu or cuda
/// \throws InvalidArgument for more samples than the device takes
Choices resolve(const BuildParams& params, const Input& input, const Device& device);

}  // namespace gnnd::detail
