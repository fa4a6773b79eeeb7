// SPDX-License-Identifier: MIT
#pragma once
/// \file request.h
/// The manifest, devices and memory that a call of build_sharded() resolves to, before any work starts.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gnnd/sharded.h"
#include "gnnd/shards/order.h"
#include "gnnd/shards/recall_sample.h"
#include "gnnd/shards/store.h"

namespace gnnd::shards {

/// The parts of a call.
struct Request {
    Manifest manifest;
    std::vector<Device> workers;
    BuildParams params;        ///< for each of the workers
    HostBudget need;           ///< of what is cached and pinned
    std::uint64_t work = 0;    ///< host memory of the builds and merges themselves
    std::int64_t objects = 0;  ///< on which the recall is measured; 0: it is not

    std::uint64_t sample() const { return objects != 0 ? RecallSample::bytes(manifest, objects) : 0; }
    std::uint64_t host_budget() const {
        return std::max(need.least + work + sample(), manifest.is_ordered() ? order_bytes(manifest) : 0);
    }
};

/// \throws InvalidArgument as build_sharded(), but for what the manifest in the folder or the devices say
void check(const io::VectorReader& base, const BuildParams& params, const ShardParams& given);

/// \throws InvalidArgument for a plan that such parameters do not allow
void check_plan(MergePlan plan, const BuildParams& params);

/// True where more becomes durable than finished lists.
bool has_checkpoints(const ShardParams& given);
/// True if there is a folder to be resumed.
bool goes_on(const ShardParams& given);
/// With the number of shards and the width of ids, where they are left open: those of the folder that is resumed, or
/// the width that is needed. The number stays open where there is no folder.
ShardParams settled(const BaseRecord& base, const ShardParams& given);

/// One for each worker.
std::vector<Device> devices_of(const BuildParams& params, const ShardParams& given);
/// Most bytes of host memory to take.
std::uint64_t host_bound(std::int64_t given);
Manifest manifest_for(const BaseRecord& base, const BuildParams& params, const ShardParams& settled);

/// Chooses the number of shards where it is open. \throws Unavailable, and Error where no number of them fits
Request make_request(const BaseRecord& base, const BuildParams& params, const ShardParams& settled);

}  // namespace gnnd::shards
