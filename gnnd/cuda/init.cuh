#pragma once
/// \file init.cuh
/// Step 1 of GNND: the lists to start from, as candidates that merge.cuh puts into empty lists.
///
/// Random: p random objects, as in the paper. Projection: trees as pynndescent's, but every node divides its objects by
/// which of up to 256 random members is nearest, instead of two, so that two or three levels of matrix products make a
/// tree. Its leaves are windows of kWindow consecutive objects in the tree's order (kWideWindow in merges of rows of
/// one slab); each object meets those of its own.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/device/tile.cuh"

namespace gnnd::cuda {

inline constexpr int kWindow = 256;       ///< objects of a leaf
inline constexpr int kWideWindow = 512;   ///< of a leaf where only half of the pairs count
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
    /// Two keys at once: of two sorted rows the i-th is the least of the greater ones of all pairs that stand i apart.
    __device__ void take(Sum a, Sum b) {
        const Sum low = min(a, b), high = max(a, b);
        key[3] = least(max(key[2], low), max(key[1], high), key[3]);
        key[2] = least(max(key[1], low), max(key[0], high), key[2]);
        key[1] = least(max(key[0], low), high, key[1]);
        key[0] = min(key[0], low);
    }
    __device__ void drop_first() {
#pragma unroll
        for (int i = 0; i < 3; ++i) key[i] = key[i + 1];
        set_worst(key[3]);
    }
};

/// What a block of meet_kernel works on. Across: a merge, where only objects of different sets meet. Its windows are
/// twice as long: what two sets of m objects have in products with each other is what one of m has in products with
/// itself, and sets of other sizes have less.
template <bool OneSlab, bool Across>
struct Meeting {
    static_assert(OneSlab || !Across);  // the sums of several slabs stay in registers: 256 columns of them fit
    static constexpr int kLeaf = Across ? kWideWindow : kWindow;
    /// Objects of a block: a whole window where the sums of one slab are chosen from at once, else what registers hold.
    static constexpr int kRows = OneSlab ? kLeaf : kBlockRows;
    /// Across: 33 stripes of rows at most, three a warp, and as many blocks as shared memory holds.
    static constexpr int kThreads = Across ? 384 : OneSlab ? 512 : 2 * kBlockRows;
    static constexpr int kBlocks = OneSlab && !Across ? 2 : 3;          ///< on a multiprocessor
    static constexpr int kPlaces = Across ? kLeaf + kTileRows : kLeaf;  ///< in shared memory, gaps included
    static constexpr int kBytes = kPlaces * kSlab;
};

/// A thread sees two columns of each tile, 2 quarter and 2 quarter + 1, where quarter = lane % 4. A key numbers only
/// the columns of its thread's quarter, so that windows may have four times as many as a key can tell apart.
__device__ inline int number_in_quarter(int column) {
    return column / kTileColumns * 2 + column % 2;
}
__device__ inline int column_of(int number, int quarter) {
    return number / 2 * kTileColumns + quarter * 2 + number % 2;
}
static_assert(kWideWindow / 4 <= 1 << kColumnBits);

__device__ inline int whole_stripes(int rows) {
    return (rows + kTileRows - 1) / kTileRows * kTileRows;
}

/// Puts the ids order[0, count) at places of their set: those of the first set at 0, the others behind them at the next
/// whole stripe, kNoId between and behind. Returns how many are of the first set. They stay in their order, so that
/// results do not change from run to run. By all threads of the block.
template <class Shape>
__device__ int separate(u32* ids, const u32* order, int count, detail::Pairs pairs) {
    constexpr int kGroups = Shape::kLeaf / kWarp, kWarps = Shape::kThreads / kWarp;
    constexpr int kRounds = (kGroups + kWarps - 1) / kWarps;
    static_assert(kGroups <= kWarp);
    __shared__ u32 firsts[kGroups];
    u32 id[kRounds], ballot[kRounds];
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        const int i = threadIdx.x + round * Shape::kThreads;
        id[round] = i < count ? order[i] : kNoId;
        ballot[round] = __ballot_sync(kAllLanes, id[round] < pairs.border);
        if (i % kWarp == 0 && i < Shape::kLeaf) firsts[i / kWarp] = __popc(ballot[round]);
    }
    for (int place = threadIdx.x; place < Shape::kPlaces; place += Shape::kThreads) ids[place] = kNoId;
    __syncthreads();
    const u32 group = lane_id() < kGroups ? firsts[lane_id()] : 0;
    const int all = int(__reduce_add_sync(kAllLanes, group));
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        const int i = threadIdx.x + round * Shape::kThreads;
        const u32 below = __reduce_add_sync(kAllLanes, lane_id() < i / kWarp ? group : 0);
        const int before = int(below) + rank_in(ballot[round]);
        if (i < count) ids[id[round] < pairs.border ? before : whole_stripes(all) + i - before] = id[round];
    }
    return all;
}

/// Puts the nearest of each object's window at places [at, at + take) of its candidates: the `take` (at most 16)
/// nearest of those that are among the nearest four in one of four quarters of the window; Across, of the objects of
/// the other set in the window.
template <class Engine, bool OneSlab, bool Across>
__global__ void __launch_bounds__(Meeting<OneSlab, Across>::kThreads, Meeting<OneSlab, Across>::kBlocks)
    meet_kernel(Points points, const u32* order, Candidates candidates, int at, int take) {
    using Sum = typename Engine::Sum;
    using Keys = Key<Sum, OneSlab && std::is_same_v<Sum, int>>;
    using Shape = Meeting<OneSlab, Across>;
    constexpr int kTiles = Shape::kLeaf / kTileColumns, kThreads = Shape::kThreads;
    extern __shared__ __align__(1024) std::uint8_t tile[];  // kPlaces x kSlab
    __shared__ u32 ids[Shape::kPlaces];
    __shared__ __align__(8) Sum terms[Shape::kPlaces];
    const std::int64_t begin = std::int64_t(blockIdx.x) * Shape::kRows, start = begin / Shape::kLeaf * Shape::kLeaf;
    const int count = int(min(std::int64_t(Shape::kLeaf), points.n - start));
    int sizes[2] = {count, 0}, second = Shape::kLeaf, end = Shape::kLeaf;  // objects of the sets, where they stand
    if constexpr (Across) {
        sizes[0] = separate<Shape>(ids, order + start, count, points.pairs);
        sizes[1] = count - sizes[0];
        second = whole_stripes(sizes[0]);
        end = second + whole_stripes(sizes[1]);
    } else {
        for (int i = threadIdx.x; i < Shape::kPlaces; i += kThreads) ids[i] = i < count ? order[start + i] : kNoId;
    }
    __syncthreads();
    const int quarter = lane_id() % 4;
    const Sum factor = Keys::factor(points);
    NearestFour<Sum> nearest[2];  // of this thread's rows of a stripe, lane / 4 and 8 more
    typename Engine::Rows rows;
    const auto fetch = [&](int slab) {
        load_rows<kThreads>(tile, 0, ids, sizes[0], second, points, slab);
        if (Across) load_rows<kThreads>(tile, second, ids + second, sizes[1], end - second, points, slab);
        commit_loads();
        if (slab == 0)  // read while the rows are on their way
            for (int i = threadIdx.x; i < end; i += kThreads)
                terms[i] = ids[i] != kNoId ? Keys::term(points, ids[i], number_in_quarter(i < second ? i : i - second))
                                           : Keys::no_term();
        wait_loads<0>();
        __syncthreads();
        return min(kSlab, points.row_bytes - slab * kSlab) / kStep;
    };
    const auto choose = [&](const Sum(&sum)[4], int row, int columns, int t) {
        Sum key[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = row + i / 2 * 8, c = columns + t * kTileColumns + quarter * 2 + i % 2;
            key[i] = Keys::make(sum[i], factor, terms[c], t * 2 + i % 2);
            if (!Across && (r == c || (!OneSlab && !points.pairs.count(ids[r], ids[c])))) set_worst(key[i]);
        }
        nearest[0].take(key[0], key[1]);
        nearest[1].take(key[2], key[3]);
    };
    const auto put = [&](int row, int columns) {
        for (int j = 0; j < take; j += 4)  // four neighbours of a row, one a thread, are a sector of memory
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                Sum key = Sum();
                int from = 0;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    Sum best = nearest[r].key[0];
                    best = min(best, __shfl_xor_sync(kAllLanes, best, 1));
                    best = min(best, __shfl_xor_sync(kAllLanes, best, 2));
                    const u32 holders = __ballot_sync(kAllLanes, nearest[r].key[0] == best) >> (lane_id() - quarter);
                    const int holder = __ffs(int(holders)) - 1;  // of those with equal keys the first
                    if (quarter == holder) nearest[r].drop_first();
                    if (quarter == i) {
                        key = best;
                        from = holder;
                    }
                }
                const int mine = row + r * 8;
                const u32 id = ids[mine];
                if (j + quarter < take && id != kNoId)
                    candidates.entries[std::int64_t(id) * candidates.capacity + at + j + quarter] =
                        Keys::valid(key) ? pack(Keys::distance(points, key, terms[mine]),
                                                ids[columns + column_of(Keys::column(key), from)])
                                         : pack(INFINITY, kNoId);
            }
        const u32 id = ids[row + quarter % 2 * 8];
        if (quarter < 2 && id != kNoId) candidates.counts[id] = u32(at + take);
    };
    const int stripe = threadIdx.x / kWarp * kTileRows;
    if constexpr (OneSlab) {
        fetch(0);
        constexpr int steps = kSlab / kStep;  // all of them: behind a row's end the slab holds zeros
        for (int first = stripe; first < end; first += kThreads / kWarp * kTileRows) {
            const bool of_second = first >= second;
            const int columns = Across && !of_second ? second : 0;
            const int tiles = Across ? ((of_second ? sizes[0] : sizes[1]) + kTileColumns - 1) / kTileColumns : kTiles;
            nearest[0].clear();
            nearest[1].clear();
            Engine::load(rows, tile, first, steps);
#pragma unroll 4
            for (int t = 0; t < tiles; ++t) {
                Sum sum[4] = {};
                Engine::multiply(sum, rows, tile, columns + t * kTileColumns, steps);
                choose(sum, first + lane_id() / 4, columns, t);
            }
            put(first + lane_id() / 4, columns);
        }
    } else {
        const int first = int(begin - start) + stripe;
        Sum sums[kTiles][4] = {};
        for (int slab = 0; slab * kSlab < points.row_bytes; ++slab) {
            const int steps = fetch(slab);
            Engine::load(rows, tile, first, steps);
#pragma unroll
            for (int t = 0; t < kTiles; ++t) Engine::multiply(sums[t], rows, tile, t * kTileColumns, steps);
            __syncthreads();
        }
        nearest[0].clear();
        nearest[1].clear();
#pragma unroll
        for (int t = 0; t < kTiles; ++t) choose(sums[t], first + lane_id() / 4, 0, t);
        put(first + lane_id() / 4, 0);
    }
}

/// Puts given or random neighbours, of those that count, at the places [0, count) of each object's candidates. One warp
/// an object.
/// \param graph  n x width ids, of which those from `first` on are taken, -1 for none; null: random ones instead
/// \param ordered  the lists must not depend on the order of blocks: no distance may be more than what a cross-match
///                 finds for the pair (update.cuh), so what sums of floats may differ by is taken off. Else distances
///                 are those of a cross-match, and no neighbour to start from is nearer than one that it finds.
template <class Engine>
__global__ void __launch_bounds__(kWarp * 8)
    seed_kernel(Points points, Candidates candidates, const std::int32_t* graph, int width, int first, int count,
                u32 seed, bool ordered) {
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
            const Sum sum = Engine::pair(points, u32(object), id), factor = Keys::factor(points);
            const Sum term = Keys::term(points, id, 0), row_term = Keys::term(points, u32(object), 0);
            Sum key = Keys::make(sum, factor, term, 0);
            if (ordered) key = Keys::lowered(key, sum * factor, term, row_term);
            distance = Keys::distance(points, key, row_term);
        }
        if (lane_id() == 0) candidates.entries[object * candidates.capacity + j] = pack(distance, id);
    }
    if (lane_id() == 0) candidates.counts[object] = u32(count);
}

}  // namespace gnnd::cuda
