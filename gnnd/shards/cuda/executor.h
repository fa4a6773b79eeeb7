// SPDX-License-Identifier: MIT
#pragma once
/// \file executor.h
/// The executor of a GPU (shards/executor.h) that keeps shards on the device.

#include <memory>

#include "gnnd/shards/executor.h"

namespace gnnd::cuda {

/// Takes all the device memory that it will need at once: for all shards, but no more than fit, vectors, local graph
/// and lists; the result of a merge; and what a merge works in. Null where not even the two shards of a merge and the
/// one of the next fit into what is free or params.device_memory allows, which workers on the same device share. Where
/// all shards fit for every worker, workers take them over from each other's devices.
std::unique_ptr<shards::Executor> make_executor(shards::Store& store, const BuildParams& params,
                                                const shards::ExecutorOptions& options);

/// As shards::has_room().
bool has_room(const shards::Manifest& manifest, const BuildParams& params, const shards::ExecutorOptions& options);

}  // namespace gnnd::cuda
