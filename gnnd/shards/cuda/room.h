// SPDX-License-Identifier: MIT
#pragma once
/// \file room.h
/// The division of a worker's device memory between shards, the result of a merge and the work on it.

#include <cstddef>
#include <cstdint>

#include "gnnd/builder.h"
#include "gnnd/params.h"
#include "gnnd/shards/executor.h"
#include "gnnd/shards/manifest.h"

namespace gnnd::cuda {

/// Sizes in bytes, each a multiple of 256.
struct ShardSizes {
    explicit ShardSizes(const shards::Manifest& manifest);
    std::size_t row;      ///< a vector; no multiple
    std::size_t vectors;  ///< of a shard
    /// Ids, or as much again distances: of a shard's local graph, of what a pair merge gives.
    std::size_t local, result;
    std::size_t list_ids, list_distances;  ///< of a shard's lists
    std::size_t lists() const { return list_ids + list_distances; }
    std::size_t shard() const { return vectors + 2 * local + lists(); }
};

struct Room {
    std::size_t work = 0;  ///< bytes that a merge, or the recall's sample, works in
    int slots = 0;         ///< places for shards; 0: not enough to keep any
};

/// Device memory of a build of the whole base, from and to host memory.
/// \throws OutOfDeviceMemory where it does not fit
MemoryPlan plan_of_whole(const shards::Manifest& manifest, const BuildParams& params);

/// The room that a worker can take: places for all shards, or for as many as fit into what is free or
/// params.device_memory allows, which the workers of a device share, but at least for the two of a merge and the one
/// of the next.
Room room_for(const shards::Manifest& manifest, const BuildParams& params, const shards::ExecutorOptions& options);

}  // namespace gnnd::cuda
