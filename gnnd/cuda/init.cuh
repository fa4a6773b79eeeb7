#pragma once
/// \file init.cuh
/// Step 1 of GNND: the lists to start from, as candidates that merge.cuh puts into empty lists.
///
/// Random: p random objects, as in the paper. Projection: trees as pynndescent's, but every node divides its objects by
/// which of up to 256 random members is nearest, instead of two, so that two or three levels of matrix products make a
/// tree. Its leaves are windows of kWindow consecutive objects in the tree's order; each object meets those of its own.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/device/tile.cuh"

namespace gnnd::cuda {

inline constexpr int kWindow = 256;       ///< objects of a leaf
inline constexpr int kMaxPivots = 256;    ///< ways that a node divides
inline constexpr int kBlockRows = 64;     ///< objects of a block, 16 per warp
inline constexpr int kPivotColumns = 64;  ///< pivots that a block compares with at a time

/// Writes keys[i] = node * pivots + (nearest pivot of object order[i]), where a node is `window` consecutive objects of
/// the order. Nearest by l2, whatever the metric: it keeps the parts even. points.bias holds squared norms.
template <class Engine>
__global__ void __launch_bounds__(2 * kBlockRows)
    divide_kernel(Points points, const u32* order, std::int64_t window, int pivots, u32 seed, u32* keys) {
    using Sum = typename Engine::Sum;
    using Keys = Key<Sum, false>;
    constexpr int kTiles = kPivotColumns / kTileColumns;
    __shared__ __align__(128) std::uint8_t tile[(kBlockRows + kPivotColumns) * kSlab];
    __shared__ u32 ids[kBlockRows + kPivotColumns];
    __shared__ Sum terms[kPivotColumns];
    const std::int64_t begin = std::int64_t(blockIdx.x) * kBlockRows;
    const std::int64_t node = begin / window;
    const u32 node_size = u32(min(window, points.n - node * window));
    const int rows = int(min(std::int64_t(kBlockRows), points.n - begin));
    if (threadIdx.x < rows) ids[threadIdx.x] = order[begin + threadIdx.x];

    const int stripe = threadIdx.x / kWarp * kTileRows, slabs = (points.row_bytes + kSlab - 1) / kSlab;
    const Sum factor = Keys::factor(points);
    Best<Sum, 1> best[2];
    best[0].clear();
    best[1].clear();
    for (int first = 0; first < pivots; first += kPivotColumns) {
        const int columns = min(kPivotColumns, pivots - first);
        if (threadIdx.x < kPivotColumns) {
            const bool real = threadIdx.x < columns;
            const u32 hash = mix(seed + mix(u32(node) * kMaxPivots + first + threadIdx.x));
            const u32 id = real ? order[node * window + scaled(hash, node_size)] : 0;
            ids[kBlockRows + threadIdx.x] = id;
            terms[threadIdx.x] = real ? Keys::term(points, id, 0) : Keys::no_term();
        }
        __syncthreads();
        Sum sums[kTiles][4] = {};
        for (int slab = 0; slab < slabs; ++slab) {
            if (slabs > 1 || first == 0) load_rows<2 * kBlockRows>(tile, 0, ids, rows, rows, points, slab);
            load_rows<2 * kBlockRows>(tile, kBlockRows, ids + kBlockRows, columns, kPivotColumns, points, slab);
            commit_loads();
            wait_loads<0>();
            __syncthreads();
            const int steps = min(kSlab, points.row_bytes - slab * kSlab) / kStep;
            typename Engine::Rows a;
            Engine::load(a, tile, stripe, steps);
#pragma unroll
            for (int t = 0; t < kTiles; ++t) Engine::multiply(sums[t], a, tile, kBlockRows + t * kTileColumns, steps);
            __syncthreads();
        }
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            const int c = t * kTileColumns + lane_id() % 4 * 2;
            const Sum t0 = terms[c], t1 = terms[c + 1];
            best[0].take(Keys::make(sums[t][0], factor, t0, first + c),
                         Keys::make(sums[t][1], factor, t1, first + c + 1));
            best[1].take(Keys::make(sums[t][2], factor, t0, first + c),
                         Keys::make(sums[t][3], factor, t1, first + c + 1));
        }
        __syncthreads();
    }
    const Best<Sum, 1> by_row = Best<Sum, 1>::halve(best[0], best[1], 1);
    const Best<Sum, 1> nearest = Best<Sum, 1>::halve(by_row, by_row, 2);
    const int row = stripe + lane_id() / 4 + lane_id() % 2 * 8;
    if (lane_id() % 4 < 2 && row < rows)
        keys[begin + row] = u32(node) * u32(pivots) + u32(Keys::column(nearest.key[0]));
}

/// The nearest four keys of one row that one thread has seen, in order.
template <class Sum>
struct NearestFour {
    Sum key[4];

    __device__ void clear() {
        for (Sum& k : key) set_worst(k);
    }
    __device__ void take(Sum x) {
#pragma unroll
        for (int i = 3; i > 0; --i) key[i] = min(key[i], max(key[i - 1], x));
        key[0] = min(key[0], x);
    }
    __device__ void drop_first() {
#pragma unroll
        for (int i = 0; i < 3; ++i) key[i] = key[i + 1];
        set_worst(key[3]);
    }
};

/// Objects of a block: a whole window where the sums of one slab are chosen from at once, else what registers hold.
template <bool OneSlab>
inline constexpr int kMeetRows = OneSlab ? kWindow : kBlockRows;

/// Puts the nearest of each object's window at places [at, at + take) of its candidates: the `take` (at most 16)
/// nearest of those that are among the nearest four in one of four quarters of the window.
template <class Engine, bool OneSlab>
__global__ void __launch_bounds__(2 * kMeetRows<OneSlab>)
    meet_kernel(Points points, const u32* order, Candidates candidates, int at, int take) {
    using Sum = typename Engine::Sum;
    using Keys = Key<Sum, OneSlab && std::is_same_v<Sum, int>>;
    constexpr int kTiles = kWindow / kTileColumns, kRows = kMeetRows<OneSlab>;
    extern __shared__ __align__(1024) std::uint8_t tile[];  // kWindow x kSlab
    __shared__ u32 ids[kWindow];
    __shared__ Sum terms[kWindow];
    const std::int64_t begin = std::int64_t(blockIdx.x) * kRows, start = begin / kWindow * kWindow;
    const int count = int(min(std::int64_t(kWindow), points.n - start));
    for (int i = threadIdx.x; i < kWindow; i += blockDim.x) {
        ids[i] = i < count ? order[start + i] : kNoId;
        terms[i] = i < count ? Keys::term(points, ids[i], i) : Keys::no_term();
    }
    __syncthreads();
    const int first = int(begin - start) + threadIdx.x / kWarp * kTileRows;  // this warp's first row
    const int row = first + lane_id() / 4;                                   // this thread's, and row + 8
    const Sum factor = Keys::factor(points);
    NearestFour<Sum> nearest[2];
    nearest[0].clear();
    nearest[1].clear();
    const auto choose = [&](const Sum(&sum)[4], int t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int c = t * kTileColumns + lane_id() % 4 * 2 + i % 2, r = row + i / 2 * 8;
            if (r != c && points.pairs.count(ids[r], ids[c]))
                nearest[i / 2].take(Keys::make(sum[i], factor, terms[c], c));
        }
    };
    typename Engine::Rows rows;
    const auto fetch = [&](int slab) {
        load_rows<2 * kRows>(tile, 0, ids, count, kWindow, points, slab);
        commit_loads();
        wait_loads<0>();
        __syncthreads();
        const int steps = min(kSlab, points.row_bytes - slab * kSlab) / kStep;
        Engine::load(rows, tile, first, steps);
        return steps;
    };
    if constexpr (OneSlab) {
        const int steps = fetch(0);
#pragma unroll 4
        for (int t = 0; t < kTiles; ++t) {
            Sum sum[4] = {};
            Engine::multiply(sum, rows, tile, t * kTileColumns, steps);
            choose(sum, t);
        }
    } else {
        Sum sums[kTiles][4] = {};
        for (int slab = 0; slab * kSlab < points.row_bytes; ++slab) {
            const int steps = fetch(slab);
#pragma unroll
            for (int t = 0; t < kTiles; ++t) Engine::multiply(sums[t], rows, tile, t * kTileColumns, steps);
            __syncthreads();
        }
#pragma unroll
        for (int t = 0; t < kTiles; ++t) choose(sums[t], t);
    }
    for (int j = 0; j < take; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            Sum best = nearest[r].key[0];
            best = min(best, __shfl_xor_sync(kAllLanes, best, 1));
            best = min(best, __shfl_xor_sync(kAllLanes, best, 2));
            if (nearest[r].key[0] == best) nearest[r].drop_first();
            const int mine = row + r * 8;
            if (lane_id() % 4 == j % 4 && mine < count) {
                const bool valid = Keys::valid(best);
                candidates.entries[std::int64_t(ids[mine]) * candidates.capacity + at + j] =
                    valid ? pack(Keys::distance(points, best, terms[mine]), ids[Keys::column(best)])
                          : pack(INFINITY, kNoId);
            }
        }
    if (lane_id() % 4 < 2) {
        const int mine = row + lane_id() % 2 * 8;
        if (mine < count) candidates.counts[ids[mine]] = u32(at + take);
    }
}

/// Puts given or random neighbours, of those that count, at the places [0, count) of each object's candidates. One warp
/// an object.
/// graph: n x width ids, of which those from `first` on are taken, -1 for none; null: random ones instead.
template <class Engine>
__global__ void __launch_bounds__(kWarp * 8)
    seed_kernel(Points points, Candidates candidates, const std::int32_t* graph, int width, int first, int count,
                u32 seed) {
    const std::int64_t object = std::int64_t(blockIdx.x) * 8 + threadIdx.x / kWarp;
    if (object >= points.n) return;
    using Sum = typename Engine::Sum;
    using Keys = Key<Sum, false>;
    for (int j = 0; j < count; ++j) {
        const auto random = [&] {
            const u32 hash = mix(seed + mix(u32(object)) + mix(u32(j + 1) * 0x9e3779b1u));
            return points.pairs.first_partner(u32(object)) +
                   scaled(hash, points.pairs.partners(u32(object), u32(points.n)));
        };
        u32 id = graph != nullptr ? u32(graph[object * width + first + j]) : random();
        if (id == u32(object) || id >= u32(points.n)) id = kNoId;
        float distance = INFINITY;
        if (id != kNoId) {
            // The arithmetic of a cross-match, or a little less: see update.cuh.
            const Sum sum = Engine::pair(points, u32(object), id), factor = Keys::factor(points);
            const Sum term = Keys::term(points, id, 0), row_term = Keys::term(points, u32(object), 0);
            const Sum key = Keys::lowered(Keys::make(sum, factor, term, 0), sum * factor, term, row_term);
            distance = Keys::distance(points, key, row_term);
        }
        if (lane_id() == 0) candidates.entries[object * candidates.capacity + j] = pack(distance, id);
    }
    if (lane_id() == 0) candidates.counts[object] = u32(count);
}

}  // namespace gnnd::cuda
