// SPDX-License-Identifier: MIT
#pragma once
/// \file exhaustive.h
/// Sets so small that comparing all pairs, on the host, costs less than sampling.

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// The exact graph. Vectors, ids and distances (n x k each) lie on the host or on the current device.
void run_exhaustively(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                      Resources& resources, std::int32_t* ids, float* distances);

}  // namespace gnnd::cuda
