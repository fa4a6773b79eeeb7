// SPDX-License-Identifier: MIT
#pragma once
/// \file exhaustive.h
/// Sets so small that comparing all pairs, on the host, costs less than sampling.

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// Up to so many objects are compared on the host.
inline constexpr std::int64_t kMostOnHost = 2 * kMaxK;

/// The exact graph. Vectors, ids and distances (n x k each) lie on the host or on the current device.
void run_exhaustively(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                      Resources& resources, std::int32_t* ids, float* distances);

/// Its rows of chosen objects.
/// \param queries  host: `count` numbers in [0, n)
KnnGraph compare_on_host(const detail::Input& input, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& params, const Callbacks& callbacks, Resources& resources);

}  // namespace gnnd::cuda
