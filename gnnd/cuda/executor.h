#pragma once
/// \file executor.h
/// The executor of a GPU (shards/executor.h) that keeps shards on the device.

#include <memory>

#include "gnnd/shards/executor.h"

namespace gnnd::cuda {

/// Takes all the device memory that it will need at once: three shards (those of the present merge and the one of the
/// next), two results, and what a merge works in. Null where that is more than is free or params.device_memory allows,
/// or where merges do not start from whole lists.
std::unique_ptr<shards::Executor> make_executor(const BuildParams& params, const shards::TaskSize& size);

}  // namespace gnnd::cuda
