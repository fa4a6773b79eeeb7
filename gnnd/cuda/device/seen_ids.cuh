// SPDX-License-Identifier: MIT
#pragma once
/// \file seen_ids.cuh
/// Ids that stand twice among many.

#include "gnnd/cuda/device/warp.cuh"

namespace gnnd::cuda {

/// The ids that a warp has seen, as bits of their hashes: an id whose bit is not set is new for sure.
template <int Words>
struct SeenIds {
    u32 words[Words];

    __device__ void clear() {
        for (int i = lane_id(); i < Words; i += kWarp) words[i] = 0;
    }
    /// True if it may have been there.
    __device__ bool add(u32 id) {
        const u32 hash = id * 0x9e3779b1u, bit = 1u << (hash >> 27);  // the upper bits of a product are well mixed
        return atomicOr(&words[(hash >> 15) % Words], bit) & bit;
    }
};

}  // namespace gnnd::cuda
