// SPDX-License-Identifier: MIT
#pragma once
/// \file variants.cuh
/// The paper's variants of the update for one arithmetic.

#include "gnnd/cuda/engine/cross_match_launch.cuh"
#include "gnnd/cuda/engine/instances.h"
#include "gnnd/cuda/variants/lock_update.cuh"
#include "gnnd/cuda/variants/sort_update.cuh"

namespace gnnd::cuda {

template <class Arithmetic>
void cross_match_variant(const Points& points, const CrossMatchArgs& args, cudaStream_t stream) {
    const LockedLists locked{args.lists, args.variant.locks, args.counters};
    switch (args.variant.update) {
        case Update::automatic:
            break;
        case Update::selective:
            launch_cross_match<Arithmetic, 0>(points, args, LockUpdate{locked}, stream);
            break;
        case Update::all:
            launch_cross_match<Arithmetic, 0>(points, args, SortUpdate{locked}, stream);
            break;
    }
}

}  // namespace gnnd::cuda
