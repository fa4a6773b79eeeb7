// SPDX-License-Identifier: MIT
#pragma once
/// \file join_window.cuh
/// Step 1 of GNND, the leaves of a projection tree: windows of consecutive objects in the tree's order. The objects of
/// a window are compared with each other, and each takes the nearest as candidates; in a merge those of the other set.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

/// The shape of a block's work. Across: a merge, where only objects of different sets are compared. Its windows are
/// twice as long: what two sets of m objects have in products with each other is what one of m has in products with
/// itself, and sets of other sizes have less.
/// \tparam KTiles  1 to 3: rows are of at most so many tiles of kTileBytes, which lie in shared memory together.
///                 0: they pass through it, whatever their length, and registers hold the sums of 256 columns
template <int KTiles, bool Across>
struct WindowShape {
    static_assert(KTiles == 1 || !Across);  // of longer rows KTiles 0 sees which pairs count
    static constexpr int kObjects = Across ? kWideWindow : kWindow;
    /// Objects of a block: a whole window where the sums of whole rows are chosen from at once, else what registers
    /// hold.
    static constexpr int kRows = KTiles != 0 ? kObjects : kBlockRows;
    /// Across: 33 stripes of rows at most, three a warp, and as many blocks as shared memory holds.
    static constexpr int kThreads = Across ? 384 : KTiles == 1 ? 512 : KTiles != 0 ? 256 : 2 * kBlockRows;
    static constexpr int kBlocks = (KTiles == 1 && !Across) || KTiles == 3 ? 2 : 3;  ///< on a multiprocessor
    static constexpr int kPlaces = Across ? kObjects + kTileRows : kObjects;  ///< in shared memory, gaps included
    static constexpr int kStageBytes = kPlaces * kTileBytes;
    static constexpr int kStages = KTiles != 0 ? KTiles : 1, kBytes = kStages * kStageBytes;
};

/// Of every eight columns a thread sees two, 2 quarter and 2 quarter + 1, where quarter = lane % 4. A key has room for
/// 2^kColumnBits numbers, and a window may have more columns. So a key numbers the columns of its thread's quarter
/// only, 0, 1 for the first eight, 2, 3 for the next, and who reads a key must know the quarter that it comes from.
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
    constexpr int kGroups = Shape::kObjects / kWarp, kWarps = Shape::kThreads / kWarp;
    constexpr int kRounds = (kGroups + kWarps - 1) / kWarps;
    static_assert(kGroups <= kWarp);
    __shared__ u32 firsts[kGroups];
    u32 id[kRounds], ballot[kRounds];
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        const int i = threadIdx.x + round * Shape::kThreads;
        id[round] = i < count ? order[i] : kNoId;
        ballot[round] = __ballot_sync(kAllLanes, id[round] < pairs.border);
        if (i % kWarp == 0 && i < Shape::kObjects) firsts[i / kWarp] = __popc(ballot[round]);
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

/// Of an object's window the `take` nearest of those that are among the nearest two in one of eight parts of the
/// window; Across, of the objects of the other set in the window. A part is two of every sixteen columns: what a lane
/// sees of the even or of the odd tiles. The nearest four in one of four parts, of all tiles, take more instructions,
/// and a build with them ends with 0.0001 to 0.0015 more recall (benchs/NOTEBOOK.md).
template <class Arithmetic, int KTiles, bool Across>
__global__ void __launch_bounds__(WindowShape<KTiles, Across>::kThreads, WindowShape<KTiles, Across>::kBlocks)
    join_window_kernel(Points points, JoinWindowArgs args) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, KTiles == 1 && std::is_same_v<Sum, int>>;
    using Shape = WindowShape<KTiles, Across>;
    constexpr int kTiles = Shape::kObjects / kTileColumns, kThreads = Shape::kThreads;
    extern __shared__ __align__(1024) std::uint8_t tile[];  // kStages x kPlaces x kTileBytes
    __shared__ u32 ids[Shape::kPlaces];
    __shared__ __align__(8) Sum terms[Shape::kPlaces];
    const std::int64_t begin = std::int64_t(blockIdx.x) * Shape::kRows,
                       start = begin / Shape::kObjects * Shape::kObjects;
    const int count = int(min(std::int64_t(Shape::kObjects), points.n - start));
    int sizes[2] = {count, 0}, second = Shape::kObjects,
        end = Shape::kObjects;  // objects of the sets, where they stand
    if constexpr (Across) {
        sizes[0] = separate<Shape>(ids, args.order + start, count, points.pairs);
        sizes[1] = count - sizes[0];
        second = whole_stripes(sizes[0]);
        end = second + whole_stripes(sizes[1]);
    } else {
        for (int i = threadIdx.x; i < Shape::kPlaces; i += kThreads) ids[i] = i < count ? args.order[start + i] : kNoId;
    }
    __syncthreads();
    const int quarter = lane_id() % 4;
    const Sum factor = Keys::factor(points);
    Best<Sum, 2> best[2][2];  // of this thread's rows of a stripe, lane / 4 and 8 more, in even and in odd tiles
    const auto clear = [&] {
        for (auto& of_row : best)
            for (auto& of_tiles : of_row) of_tiles.clear();
    };
    const auto fetch = [&](int k, std::uint8_t* stage) {
        load_rows<kThreads, Shape::kPlaces>(stage, 0, ids, sizes[0], second, points, k);
        if (Across) load_rows<kThreads, Shape::kPlaces>(stage, second, ids + second, sizes[1], end - second, points, k);
        commit_loads();
        if (k == 0)  // read while the rows are on their way
            for (int i = threadIdx.x; i < end; i += kThreads)
                terms[i] = ids[i] != kNoId ? Keys::term(points, ids[i], number_in_quarter(i < second ? i : i - second))
                                           : Keys::no_term();
    };
    // Of the tiles t and t + 1, the columns of one stripe. `stripe`: the first of the rows.
    const auto choose = [&](const Sum(&even)[4], const Sum(&odd)[4], int stripe, int columns, int t) {
        const int row = stripe + lane_id() / 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int column = (t + half) * kTileColumns + quarter * 2;
            Sum key[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = row + i / 2 * 8, c = columns + column + i % 2;
                key[i] = Keys::make(half == 0 ? even[i] : odd[i], factor, Keys::pair_term(terms[c], terms[r]),
                                    (t + half) * 2 + i % 2);
                if (KTiles == 0 && !points.pairs.count(ids[r], ids[c])) set_worst(key[i]);
            }
            if (!Across && t * kTileColumns == stripe)  // no object is its own neighbour
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (row + i / 2 * 8 == column + i % 2) set_worst(key[i]);
            best[0][half].take(key[0], key[1]);
            best[1][half].take(key[2], key[3]);
        }
    };
    const auto put = [&](int row, int columns) {
        NearestFour<Sum> nearest[2] = {NearestFour<Sum>::of(best[0][0], best[0][1]),
                                       NearestFour<Sum>::of(best[1][0], best[1][1])};
        for (int j = 0; j < args.take; j += 4)  // four neighbours of a row, one a thread, are a sector of memory
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
                if (j + quarter < args.take && id != kNoId)
                    args.candidates.entries[std::int64_t(id) * args.candidates.capacity + args.at + j + quarter] =
                        Keys::valid(key) ? pack(Keys::distance(points, key, terms[mine]),
                                                ids[columns + column_of(Keys::column(key), from)])
                                         : pack(INFINITY, kNoId);
            }
        const u32 id = ids[row + quarter % 2 * 8];
        if (quarter < 2 && id != kNoId) args.candidates.counts[id] = u32(args.at + args.take);
    };
    const int stripe = threadIdx.x / kWarp * kTileRows;
    if constexpr (KTiles != 0) {
#pragma unroll
        for (int k = 0; k < KTiles; ++k) fetch(k, tile + k * Shape::kStageBytes);
        wait_loads<0>();
        __syncthreads();
        constexpr int steps = kTileBytes / kStep;  // all of them: behind a row's end the tile holds zeros
        for (int first = stripe; first < end; first += kThreads / kWarp * kTileRows) {
            const bool of_second = first >= second;
            const int columns = Across && !of_second ? second : 0;
            const int tiles = Across ? whole_stripes(of_second ? sizes[0] : sizes[1]) / kTileColumns : kTiles;
            clear();
            typename Arithmetic::Rows rows[KTiles];
#pragma unroll
            for (int k = 0; k < KTiles; ++k) Arithmetic::load(rows[k], tile + k * Shape::kStageBytes, first, steps);
#pragma unroll(KTiles == 1 ? 2 : 1)
            for (int t = 0; t < tiles; t += 2) {
                Sum sums[2][4] = {};
#pragma unroll
                for (int k = 0; k < KTiles; ++k)
#pragma unroll
                    for (int half = 0; half < 2; ++half)
                        Arithmetic::multiply(sums[half], rows[k], tile + k * Shape::kStageBytes,
                                             columns + (t + half) * kTileColumns, steps);
                choose(sums[0], sums[1], first, columns, t);
            }
            put(first + lane_id() / 4, columns);
        }
    } else {
        const int first = int(begin - start) + stripe;
        Sum sums[kTiles][4] = {};
        multiply_rows<Arithmetic, kTiles>(sums, tile, first, 0, points, fetch, [](int) { return true; });
        clear();
#pragma unroll
        for (int t = 0; t < kTiles; t += 2) choose(sums[t], sums[t + 1], first, 0, t);
        put(first + lane_id() / 4, 0);
    }
}

}  // namespace gnnd::cuda
