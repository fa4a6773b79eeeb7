// SPDX-License-Identifier: MIT
#pragma once
/// \file build.h
/// build_sharded() with whatever computes.

#include "gnnd/sharded.h"
#include "gnnd/shards/executor.h"

namespace gnnd::shards {

ShardedStats build_with(const io::VectorReader& base, const BuildParams& params, const ShardParams& given,
                        const ShardCallbacks& callbacks, const ExecutorFactory& make_executor);

}  // namespace gnnd::shards
