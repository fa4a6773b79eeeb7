// SPDX-License-Identifier: MIT
#pragma once
/// \file build.h
/// A build on the current device: run() makes it so, and append() comes back to it, to refine what it has found.

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// Arguments as those of run() in backend.h. A graph to refine may lie where the result goes, and is there still if
/// this ends by an exception.
/// \param stats  iterations are added to those that are there
void build(const detail::Input& input, const BuildParams& params, const Choices& choices, const Callbacks& callbacks,
           Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats);

}  // namespace gnnd::cuda
