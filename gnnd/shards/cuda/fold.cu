// SPDX-License-Identifier: MIT
#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/shards/cuda/fold.h"

namespace gnnd::cuda {
namespace {

/// Rows of a block: with kMaxK columns of both they take 64 KiB of shared memory, or 48 of wide ids.
template <class Id>
constexpr int kWarps = sizeof(Id) == sizeof(std::int32_t) ? 4 : 2;

/// As nearer(), whose ids are of 32 bits. No id is -1.
template <class Id>
__device__ bool stands_before(float da, Id a, float db, Id b) {
    return da < db || (da == db && a < b);
}

/// One thread an entry.
template <class Id>
__global__ void split_build_kernel(DeviceGraph built, Id begin, DeviceGraph local, DeviceRows<Id> lists) {
    const std::int64_t entry = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= built.n * built.k) return;
    const std::int64_t row = entry / built.k, column = entry % built.k;
    const std::int32_t id = built.ids[entry];
    const float distance = built.distances[entry];
    if (column < local.k) {
        local.ids[row * local.k + column] = id;
        local.distances[row * local.k + column] = distance;
    }
    if (lists.ids == nullptr) return;
    lists.ids[entry] = id < 0 ? Id(id) : Id(id + begin);
    lists.distances[entry] = distance;
}

/// Two sorted rows become one, the best k. One warp a row. Shared memory: for each warp the ids of both, and behind
/// those of all warps for each the distances.
template <class Id>
__global__ void fold_kernel(DeviceGraph found, detail::Partner partner, DeviceRows<Id> lists, float sign) {
    extern __shared__ std::int64_t shared[];
    const int warp = int(threadIdx.x) / kWarp;
    const std::int64_t row = std::int64_t(blockIdx.x) * kWarps<Id> + warp;
    if (row >= found.n) return;
    const int k = int(lists.k), width = int(found.k);
    Id* const all_ids = reinterpret_cast<Id*>(shared);
    Id* const ids = all_ids + warp * (k + width);
    float* const keys = reinterpret_cast<float*>(all_ids + kWarps<Id> * (k + width)) + warp * (k + width);
    // The offered candidates stand behind the list.
    int offered = 0;
    for (int first = 0; first < width; first += kWarp) {
        const int j = first + lane_id();
        const std::int32_t id = j < width ? found.ids[row * width + j] : -1;
        const bool partners = id >= partner.first && id < partner.last;
        const u32 all = __ballot_sync(kAllLanes, partners);
        if (partners) {
            const int place = k + offered + rank_in(all);
            ids[place] = Id(id - partner.first + partner.begin);
            keys[place] = sign * found.distances[row * width + j];
        }
        offered += __popc(all);
    }
    __syncwarp();
    const Id last = lists.ids[row * k + k - 1];
    if (offered == 0 || (last >= 0 && !stands_before(keys[k], ids[k], sign * lists.distances[row * k + k - 1], last)))
        return;  // the usual case once many partners have been folded
    int listed = 0;
    for (int first = 0; first < k; first += kWarp) {
        const int j = first + lane_id();
        const Id id = j < k ? lists.ids[row * k + j] : -1;
        if (id >= 0) {
            ids[j] = id;
            keys[j] = sign * lists.distances[row * k + j];
        }
        listed += __popc(__ballot_sync(kAllLanes, id >= 0));  // -1 stands at the end
    }
    __syncwarp();
    for (int j = lane_id(); j < listed + offered; j += kWarp) {
        const bool own = j < listed;
        const int place = own ? j : k + j - listed;
        int low = own ? k : 0, high = own ? k + offered : listed;
        const int before = low;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (stands_before(keys[middle], ids[middle], keys[place], ids[place]))
                low = middle + 1;
            else
                high = middle;
        }
        const int rank = (own ? j : j - listed) + low - before;
        if (rank >= k) continue;
        lists.ids[row * k + rank] = ids[place];
        lists.distances[row * k + rank] = sign * keys[place];
    }
}

template <class Id>
void start_split_build(const DeviceGraph& built, std::int64_t begin, const DeviceGraph& local,
                       const DeviceRows<Id>& lists, cudaStream_t stream) {
    constexpr int kThreads = 256;
    split_build_kernel<Id>
        <<<blocks_for(built.n * built.k, kThreads), kThreads, 0, stream>>>(built, Id(begin), local, lists);
    GNND_LAUNCHED("split_build_kernel");
}

template <class Id>
void start_fold(const DeviceGraph& found, const detail::Partner& partner, const DeviceRows<Id>& lists,
                cudaStream_t stream) {
    const int bytes = kWarps<Id> * int(found.k + lists.k) * int(sizeof(Id) + sizeof(float));
    launch("fold", fold_kernel<Id>, blocks_for(found.n, kWarps<Id>), kWarps<Id> * kWarp, bytes, stream, found, partner,
           lists, is_similarity(found.metric) ? -1.0f : 1.0f);
}

}  // namespace

void split_build(const DeviceGraph& built, std::int64_t begin, const DeviceGraph& local, const DeviceGraph& lists,
                 cudaStream_t stream) {
    start_split_build(built, begin, local, lists, stream);
}
void split_build(const DeviceGraph& built, std::int64_t begin, const DeviceGraph& local, const WideDeviceGraph& lists,
                 cudaStream_t stream) {
    start_split_build(built, begin, local, lists, stream);
}

void fold(const DeviceGraph& found, const detail::Partner& partner, const DeviceGraph& lists, cudaStream_t stream) {
    start_fold(found, partner, lists, stream);
}
void fold(const DeviceGraph& found, const detail::Partner& partner, const WideDeviceGraph& lists, cudaStream_t stream) {
    start_fold(found, partner, lists, stream);
}

}  // namespace gnnd::cuda
