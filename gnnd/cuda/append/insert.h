// SPDX-License-Identifier: MIT
#pragma once
/// \file insert.h
/// append() by searching, on a GPU.

#include "gnnd/builder.h"
#include "gnnd/cuda/algorithm.h"
#include "gnnd/detail/input.h"

namespace gnnd::cuda {

/// See detail/insert.h. Arguments as those of run(); the device is the current one.
void insert(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks, Resources& resources,
            std::int32_t* ids, float* distances, BuildStats& stats);

}  // namespace gnnd::cuda
