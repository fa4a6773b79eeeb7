// SPDX-License-Identifier: MIT
// Stands in for shards/cuda where there is no CUDA backend.
#include "gnnd/shards/cuda/executor.h"

namespace gnnd::cuda {

std::unique_ptr<shards::Executor> make_executor(shards::Store&, const BuildParams&, const shards::ExecutorOptions&) {
    return nullptr;
}

bool has_room(const shards::Manifest&, const BuildParams&, const shards::ExecutorOptions&) {
    return false;
}

}  // namespace gnnd::cuda
