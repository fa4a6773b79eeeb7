// Step 5: from lists to a graph, with exact distances. Segments are merged here.
#include <cmath>

#include "gnnd/cuda/device/raw.cuh"
#include "gnnd/cuda/errors.h"
#include "gnnd/cuda/launch.h"

namespace gnnd::cuda {
namespace {

constexpr int kWarps = 4;

/// The metric's value of a pair of rows in the caller's own type: float32 sums, integers exactly. By a whole warp.
template <class T, class M>
__device__ float exact(const T* a, const T* b, std::int64_t d) {
    constexpr bool kInteger = M::exact_in_integers && std::is_integral_v<T>;
    using Value = std::conditional_t<kInteger, int, float>;
    using Total = std::conditional_t<kInteger, long long, float>;
    Total sum = 0, aa = 0, bb = 0;
    constexpr int kRun = 1 << 14;  // components that an int is sure to hold the sum of, a lane
    for (std::int64_t begin = lane_id(); begin < d; begin += std::int64_t(kRun) * kWarp) {
        const std::int64_t end = min(d, begin + std::int64_t(kRun) * kWarp);
        Value part = 0, part_aa = 0, part_bb = 0;
#pragma unroll 4
        for (std::int64_t c = begin; c < end; c += kWarp) {
            const Value x = Value(a[c]), y = Value(b[c]);
            part = M::accumulate(part, x, y);
            if (M::normalized) {
                part_aa += x * x;
                part_bb += y * y;
            }
        }
        sum = M::combine(sum, Total(part));
        aa += Total(part_aa);
        bb += Total(part_bb);
    }
    for (int step = kWarp / 2; step > 0; step /= 2) sum = M::combine(sum, __shfl_xor_sync(kAllLanes, sum, step));
    if (!M::normalized) return float(sum);
    return float(sum) / (sqrtf(float(warp_sum(aa))) * sqrtf(float(warp_sum(bb))));
}

/// One warp a list. Shared memory: a distance and an id for each entry of the list.
template <class T, class M>
__global__ void finish_kernel(RawVectors vectors, bool trusted, Lists lists, int k, u32 seed, const SpaceInfo* info,
                              std::int32_t* out_ids, float* out_distances) {
    extern __shared__ float shared[];
    const std::int64_t object = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    if (object >= vectors.n) return;
    const int length = lists.length;
    float* distances = shared + threadIdx.x / kWarp * 2 * length;
    u32* ids = reinterpret_cast<u32*>(distances + length);
    const T* row = raw_row<T>(vectors, object);

    int present = 0;  // entries in use; segments that are not full leave gaps
    for (int first = 0; first < length; first += kWarp) {
        const int j = first + lane_id();
        const u32 id = j < length ? lists.ids[object * length + j] & ~kNewBit : kNoId;
        const u32 used = __ballot_sync(kAllLanes, id != kNoId);
        if (id != kNoId) {
            ids[present + rank_in(used)] = id;
            distances[present + rank_in(used)] = lists.distances[object * length + j] * info->unit + info->offset;
        }
        present += __popc(used);
    }
    __syncwarp();
    if (!trusted)
        for (int j = 0; j < present; ++j) {
            const float distance = exact<T, M>(row, raw_row<T>(vectors, ids[j]), vectors.d);
            if (lane_id() == 0) distances[j] = distance;
        }
    __syncwarp();
    // Rare: lists that sampling left short get random objects, so that rows are full.
    const bool sorted = trusted && present >= k && lists.segments == 1;
    for (u32 attempt = 0; present < k; ++attempt) {
        const u32 id = scaled(mix(seed ^ mix(u32(object)) ^ mix(attempt + 1)), u32(vectors.n));
        bool known = id == u32(object);
        for (int j = lane_id(); j < present; j += kWarp) known |= ids[j] == id;
        if (__any_sync(kAllLanes, known)) continue;
        const float distance = exact<T, M>(row, raw_row<T>(vectors, id), vectors.d);
        if (lane_id() == 0) {
            ids[present] = id;
            distances[present] = distance;
        }
        ++present;
        __syncwarp();
    }
    for (int j = lane_id(); j < present; j += kWarp) {
        const float distance = distances[j], key = M::similarity ? -distance : distance;
        int rank = 0;
        if (sorted)
            rank = j;
        else
            for (int other = 0; other < present; ++other)
                rank += nearer(M::similarity ? -distances[other] : distances[other], ids[other], key, ids[j]);
        if (rank >= k) continue;
        out_ids[object * k + rank] = std::int32_t(ids[j]);
        out_distances[object * k + rank] = distance;
    }
}

}  // namespace

void finish(const RawVectors& vectors, Metric metric, bool trusted, const Lists& lists, int k, u32 seed,
            const SpaceInfo* info, std::int32_t* ids, float* distances, cudaStream_t stream) {
    const unsigned blocks = blocks_for(vectors.n, kWarps);
    const int bytes = kWarps * 2 * lists.length * int(sizeof(float));
    visit_dtype(vectors.dtype, [&](auto component) {
        visit(metric, [&](auto m) {
            using T = decltype(component);
            finish_kernel<T, decltype(m)>
                <<<blocks, kWarps * kWarp, bytes, stream>>>(vectors, trusted, lists, k, seed, info, ids, distances);
            GNND_LAUNCHED("finish_kernel");
        });
    });
}

}  // namespace gnnd::cuda
