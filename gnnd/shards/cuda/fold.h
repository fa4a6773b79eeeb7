// SPDX-License-Identifier: MIT
#pragma once
/// \file fold.h
/// Puts results of builds and pair merges into lists on the device, as shards/store.h does on the host.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gnnd/detail/fold.h"
#include "gnnd/metric.h"

namespace gnnd::cuda {

/// A graph on the device, n x k.
template <class Id>
struct DeviceRows {
    Id* ids;
    float* distances;
    std::int64_t n, k;
    Metric metric;
};
using DeviceGraph = DeviceRows<std::int32_t>;
/// Lists over a set that may have more than kMaxObjects.
using WideDeviceGraph = DeviceRows<std::int64_t>;

/// The first columns of what was built, with local ids, become the local graph, and all of it, with ids from `begin`
/// on, the lists. \param lists  ids may be null: none are wanted
void split_build(const DeviceGraph& built, std::int64_t begin, const DeviceGraph& local, const DeviceGraph& lists,
                 cudaStream_t stream);
void split_build(const DeviceGraph& built, std::int64_t begin, const DeviceGraph& local, const WideDeviceGraph& lists,
                 cudaStream_t stream);

/// As detail::fold().
void fold(const DeviceGraph& found, const detail::Partner& partner, const DeviceGraph& lists, cudaStream_t stream);
void fold(const DeviceGraph& found, const detail::Partner& partner, const WideDeviceGraph& lists, cudaStream_t stream);

}  // namespace gnnd::cuda
