#pragma once
/// \file run.h
/// What the entry points of builder.h and merge.h share: checks, the choice of the device, the way to the backend.

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"

namespace gnnd::detail {

BuildResult run(const Input& input, const BuildParams& params, const Callbacks& callbacks, Resources* resources);

/// Into arrays of the caller, n x k each; `who` asks.
BuildStats run_into(const char* who, const Input& input, const BuildParams& params, std::int32_t* ids, float* distances,
                    const Callbacks& callbacks, Resources* resources);

}  // namespace gnnd::detail
