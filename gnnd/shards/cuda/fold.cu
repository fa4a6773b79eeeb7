// SPDX-License-Identifier: MIT
#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/shards/cuda/fold.h"

namespace gnnd::cuda {
namespace {

constexpr int kWarps = 4;

/// One thread an entry.
__global__ void split_build_kernel(DeviceGraph built, std::int32_t begin, DeviceGraph local, DeviceGraph lists) {
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
    lists.ids[entry] = id < 0 ? id : id + begin;
    lists.distances[entry] = distance;
}

/// Two sorted rows become one, the best k. One warp a row. Shared memory: for each warp the ids and distances of both.
__global__ void fold_kernel(DeviceGraph found, detail::Partner partner, DeviceGraph lists, float sign) {
    extern __shared__ std::int32_t shared[];
    const std::int64_t row = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (row >= found.n) return;
    const int k = int(lists.k), width = int(found.k);
    std::int32_t* ids = shared + threadIdx.x / kWarp * 2 * (k + width);
    float* keys = reinterpret_cast<float*>(ids + k + width);
    // What is offered stands behind the list. Ids of the whole set fit 32 bits: kMaxObjects bounds it.
    int offered = 0;
    for (int first = 0; first < width; first += kWarp) {
        const int j = first + lane_id();
        const std::int32_t id = j < width ? found.ids[row * width + j] : -1;
        const bool partners = id >= partner.first && id < partner.last;
        const u32 all = __ballot_sync(kAllLanes, partners);
        if (partners) {
            const int place = k + offered + rank_in(all);
            ids[place] = std::int32_t(id - partner.first + partner.begin);
            keys[place] = sign * found.distances[row * width + j];
        }
        offered += __popc(all);
    }
    __syncwarp();
    const std::int32_t last = lists.ids[row * k + k - 1];
    if (offered == 0 ||
        (last >= 0 && !nearer(keys[k], u32(ids[k]), sign * lists.distances[row * k + k - 1], u32(last))))
        return;  // the usual case once many partners have been folded
    int listed = 0;
    for (int first = 0; first < k; first += kWarp) {
        const int j = first + lane_id();
        const std::int32_t id = j < k ? lists.ids[row * k + j] : -1;
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
            if (nearer(keys[middle], u32(ids[middle]), keys[place], u32(ids[place])))
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

}  // namespace

void split_build(const DeviceGraph& built, std::int64_t begin, const DeviceGraph& local, const DeviceGraph& lists,
                 cudaStream_t stream) {
    constexpr int kThreads = 256;
    split_build_kernel<<<blocks_for(built.n * built.k, kThreads), kThreads, 0, stream>>>(built, std::int32_t(begin),
                                                                                         local, lists);
    GNND_LAUNCHED("split_build_kernel");
}

void fold(const DeviceGraph& found, const detail::Partner& partner, const DeviceGraph& lists, cudaStream_t stream) {
    const int bytes = kWarps * 2 * int(found.k + lists.k) * int(sizeof(float));  // kMaxK: 64 KiB
    launch("fold", fold_kernel, blocks_for(found.n, kWarps), kWarps * kWarp, bytes, stream, found, partner, lists,
           is_similarity(found.metric) ? -1.0f : 1.0f);
}

}  // namespace gnnd::cuda
