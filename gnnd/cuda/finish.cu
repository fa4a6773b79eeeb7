// SPDX-License-Identifier: MIT
// Between graphs and lists. Step 5: from lists to a graph, with exact distances; segments are merged here, and in a
// merge what was set aside. And before a merge, from graphs to lists.
#include <algorithm>
#include <cmath>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/device/columns.cuh"
#include "gnnd/cuda/device/exact.cuh"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/runtime/errors.h"

namespace gnnd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kAtOnce = 4;  ///< pairs whose rows are on their way together

/// One warp an object.
__global__ void load_graph_kernel(Columns columns, Lists lists, const SpaceInfo* info) {
    const std::int64_t row = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (row >= columns.n) return;
    const std::int64_t object = row + columns.first, list = object * lists.length;
    read_columns(columns, object, [&](int place, u32 id, float distance) {
        lists.ids[list + place] = id;
        lists.distances[list + place] = (distance - info->offset) / info->unit;
    });
}

/// The columns of both sets that were set aside.
struct SetAside {
    Columns of[2];
};

/// One warp a list. Shared memory: `room` distances and ids, for the entries of the list and what was set aside.
/// The fields of FinishArgs one by one: as one struct the compiler takes fewer registers, more warps share the cache,
/// and a build of 1,000,000 x 960 took 0.025 s more (benchs/NOTEBOOK.md).
template <class T, class M>
__global__ void finish_kernel(RawVectors vectors, bool exact_distances, Lists lists, int width, SetAside set_aside,
                              const u32* visit, int room, int k, u32 seed, const SpaceInfo* info, std::int32_t* out_ids,
                              float* out_distances) {
    extern __shared__ float shared[];
    const std::int64_t turn = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (turn >= vectors.n) return;
    const std::int64_t object = visit != nullptr ? visit[turn] : turn;
    const int length = lists.length;
    float* distances = shared + threadIdx.x / kWarp * 2 * room;
    u32* ids = reinterpret_cast<u32*>(distances + room);
    const T* row = raw_row<T>(vectors, object);

    int present = 0;  // entries in use; segments that are not full leave gaps
    for (int first = 0; first < width; first += kWarp) {
        const int j = first + lane_id();
        const u32 id = j < width ? lists.ids[object * length + j] & ~kNewBit : kNoId;
        const u32 used = __ballot_sync(kAllLanes, id != kNoId);
        if (id != kNoId) {
            ids[present + rank_in(used)] = id;
            distances[present + rank_in(used)] = lists.distances[object * length + j] * info->unit + info->offset;
        }
        present += __popc(used);
    }
    __syncwarp();
    if (!exact_distances)
        for (int j = 0; j < present; j += kAtOnce) {
            float computed[kAtOnce];
            exact_several<T, M>(
                computed, row, [&](int i) { return raw_row<T>(vectors, ids[min(j + i, present - 1)]); }, vectors.d);
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i)
                if (lane_id() == i && j + i < present) distances[j + i] = computed[i];
        }
    const int listed = present;
    present += read_columns(set_aside.of[u32(object) >= set_aside.of[1].first], object,
                            [&](int place, u32 id, float distance) {
                                ids[listed + place] = id;
                                distances[listed + place] = distance;
                            });
    __syncwarp();
    // Rare: lists that sampling left short get random objects, so that rows are full.
    const bool sorted = exact_distances && present >= k && lists.segments == 1;
    for (u32 attempt = 0; present < k; ++attempt) {
        const u32 id = scaled(mix(seed ^ mix(u32(object)) ^ mix(attempt + 1)), u32(vectors.n));
        bool known = id == u32(object);
        for (int j = lane_id(); j < present; j += kWarp) known |= ids[j] == id;
        if (__any_sync(kAllLanes, known)) continue;
        const float distance = exact<T, M, kWarp>(row, raw_row<T>(vectors, id), vectors.d);
        if (lane_id() == 0) {
            ids[present] = id;
            distances[present] = distance;
        }
        ++present;
        __syncwarp();
    }
    const auto key_of = [&](int j) { return M::similarity ? -distances[j] : distances[j]; };
    for (int j = lane_id(); j < present; j += kWarp) {
        const float distance = distances[j], key = key_of(j);
        int rank = 0;
        if (sorted) {
            // Two sorted runs: how many of the other one are nearer?
            int low = j < listed ? listed : 0, high = j < listed ? present : listed;
            while (low < high) {
                const int middle = (low + high) / 2;
                if (nearer(key_of(middle), ids[middle], key, ids[j]))
                    low = middle + 1;
                else
                    high = middle;
            }
            rank = j - listed + low;
        } else
            for (int other = 0; other < present; ++other) rank += nearer(key_of(other), ids[other], key, ids[j]);
        if (rank >= k) continue;
        out_ids[object * k + rank] = std::int32_t(ids[j]);
        out_distances[object * k + rank] = distance;
    }
}

}  // namespace

void load_graph(const Columns& columns, const Lists& lists, const SpaceInfo* info, cudaStream_t stream) {
    load_graph_kernel<<<blocks_for(columns.n, kWarps), kWarps * kWarp, 0, stream>>>(columns, lists, info);
    GNND_LAUNCHED("load_graph_kernel");
}

void finish(const FinishArgs& args, Metric metric, cudaStream_t stream) {
    const int room = args.width + std::max(args.set_aside[0].count(), args.set_aside[1].count());
    visit_dtype(args.vectors.dtype, [&](auto component) {
        visit(metric, [&](auto m) {
            launch("finish", finish_kernel<decltype(component), decltype(m)>, blocks_for(args.vectors.n, kWarps),
                   kWarps * kWarp, kWarps * 2 * room * int(sizeof(float)), stream, args.vectors, args.exact_distances,
                   args.lists, args.width, SetAside{{args.set_aside[0], args.set_aside[1]}}, args.visit, room, args.k,
                   args.seed, args.info, args.ids, args.distances);
        });
    });
}

}  // namespace gnnd::cuda
