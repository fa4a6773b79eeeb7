// SPDX-License-Identifier: MIT
#pragma once
/// \file run.h
/// The way from the entry points of builder.h and merge.h to the backends: checks, the choice of the device, and of
/// what parameters leave open.

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"

namespace gnnd::detail {

/// Host memory that a run on the CPU takes, device memory on a GPU.
MemoryPlan plan(const Input& input, const BuildParams& params);

BuildResult run(const Input& input, const BuildParams& params, const Callbacks& callbacks, Resources* resources);

/// Into arrays of the caller, n x k each. \param who  called it, for messages
BuildStats run_into(const char* who, const Input& input, const BuildParams& params, std::int32_t* ids, float* distances,
                    const Callbacks& callbacks, Resources* resources);

/// The same for arguments that were checked, on the device that params.device names: neither `automatic` nor one that
/// is not there.
BuildStats run_checked(const Input& input, const BuildParams& params, const Callbacks& callbacks, Resources& resources,
                       std::int32_t* ids, float* distances);

/// The nearest k that vectors from elsewhere have in a set, exact, with the set's ids. For such arguments, too, on the
/// device, with the threads and under the metric of the parameters.
/// \param vectors  the set
/// \param sample   in host memory, of the same type and d
/// \param selves   of each vector of the sample which of the set it is, and is passed over; -1: none of them
/// \return sample.n x k; rows end with -1 where the set has fewer
KnnGraph nearest_of(const VectorView& vectors, const VectorView& sample, const std::int32_t* selves, int k,
                    const BuildParams& params, const Callbacks& callbacks, Resources& resources);

}  // namespace gnnd::detail
