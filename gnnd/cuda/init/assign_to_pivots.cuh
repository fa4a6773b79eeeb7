// SPDX-License-Identifier: MIT
#pragma once
/// \file assign_to_pivots.cuh
/// Step 1 of GNND, one level of a projection tree: every object goes to the nearest of its node's pivots. Trees are as
/// pynndescent's, but every node divides its objects by which of up to 256 random members is nearest, instead of two,
/// so that two or three levels of matrix products make a tree. Its leaves are the windows of join_window.cuh.

#include "gnnd/cuda/device/best.cuh"
#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

/// The node of a block's first object. Nodes are multiples of kWindow unless there is only one, and a block's objects
/// are of one.
struct Node {
    std::int64_t number, begin;
    u32 members;

    __device__ Node(const Points& points, const AssignToPivotsArgs& args, std::int64_t first)
        : number(first / args.node_size),
          begin(number * args.node_size),
          members(u32(min(args.node_size, points.n - begin))) {}
    /// A random member.
    __device__ u32 pivot(const AssignToPivotsArgs& args, int i) const {
        return args.order[begin + scaled(mix(args.seed + mix(u32(number) * kMaxPivots + i)), members)];
    }
    /// Each lane has what is nearest to two of a stripe's rows, 8 apart, in a quarter of the columns.
    template <class Keys, class Nearest>
    __device__ void put(const AssignToPivotsArgs& args, const Nearest (&best)[2], std::int64_t stripe, int rows) const {
        const Nearest by_row = Nearest::halve(best[0], best[1], 1), nearest = Nearest::halve(by_row, by_row, 2);
        const int row = lane_id() / 4 + lane_id() % 2 * 8;
        if (lane_id() % 4 < 2 && row < rows)
            args.keys[stripe + row] = u32(number) * u32(args.pivots) + u32(Keys::column(nearest.key[0]));
    }
};

/// Nearest by l2, whatever the metric: it keeps the parts even. points.bias holds squared norms.
template <class Arithmetic>
__global__ void __launch_bounds__(2 * kBlockRows) assign_to_pivots_kernel(Points points, AssignToPivotsArgs args) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, false>;
    using Memory = BlockMemory<Arithmetic>;
    __shared__ Memory memory;
    const std::int64_t begin = std::int64_t(blockIdx.x) * kBlockRows;
    const Node node(points, args, begin);
    const int rows = int(min(std::int64_t(kBlockRows), points.n - begin));
    if (threadIdx.x < rows) memory.ids[threadIdx.x] = args.order[begin + threadIdx.x];

    const Sum factor = Keys::factor(points);
    const int stripe = threadIdx.x / kWarp * kTileRows;
    const auto own_term = [&](int row) { return Keys::term(points, args.order[begin + min(row, rows - 1)], 0); };
    const Sum own[2] = {own_term(stripe + lane_id() / 4), own_term(stripe + lane_id() / 4 + 8)};
    Best<Sum, 1> best[2];
    best[0].clear();
    best[1].clear();
    for (int first = 0; first < args.pivots; first += kBlockColumns) {
        const int columns = min(kBlockColumns, args.pivots - first);
        if (threadIdx.x < kBlockColumns) {
            const bool real = threadIdx.x < columns;
            const u32 id = real ? node.pivot(args, first + threadIdx.x) : 0;
            memory.ids[kBlockRows + threadIdx.x] = id;
            memory.terms[threadIdx.x] = real ? Keys::term(points, id, 0) : Keys::no_term();
        }
        __syncthreads();
        typename Memory::Sums sums = {};
        memory.multiply(sums, rows, columns, first == 0, points);
#pragma unroll
        for (int t = 0; t < Memory::kTiles; ++t) {
            const int c = t * kTileColumns + lane_id() % 4 * 2;
            Sum key[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                key[i] = Keys::make(sums[t][i], factor, Keys::pair_term(memory.terms[c + i % 2], own[i / 2]),
                                    first + c + i % 2);
            best[0].take(key[0], key[1]);
            best[1].take(key[2], key[3]);
        }
        __syncthreads();
    }
    node.put<Keys>(args, best, begin + stripe, rows - stripe);
}

/// The shape of a block's work where rows are of at most 1, 2 or 3 tiles of kTileBytes: they and all pivots, or half of
/// these, lie in shared memory together.
template <int KTiles>
struct WholeRows {
    static constexpr int kRows = KTiles <= 2 ? 256 : 128, kPivots = KTiles == 1 ? kMaxPivots : kMaxPivots / 2;
    static constexpr int kBlocks = KTiles == 1 ? 3 : 2;  ///< on a multiprocessor
    static constexpr int kStageBytes = (kRows + kPivots) * kTileBytes;
    static_assert(kWindow % kRows == 0 && kPivots <= kRows);
};

/// The same for such rows.
template <class Arithmetic, int KTiles>
__global__ void __launch_bounds__(2 * WholeRows<KTiles>::kRows, WholeRows<KTiles>::kBlocks)
    assign_whole_rows_kernel(Points points, AssignToPivotsArgs args) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, KTiles == 1 && std::is_same_v<Sum, int>>;
    using Shape = WholeRows<KTiles>;
    constexpr int kRows = Shape::kRows, kPivots = Shape::kPivots, kThreads = 2 * kRows;
    extern __shared__ __align__(1024) std::uint8_t tile[];  // the rows, and behind them the pivots', KTiles times
    __shared__ u32 ids[kRows + kPivots];
    __shared__ __align__(8) Sum terms[kRows + kPivots];
    const std::int64_t begin = std::int64_t(blockIdx.x) * kRows;
    const Node node(points, args, begin);
    const int rows = int(min(std::int64_t(kRows), points.n - begin));
    const Sum factor = Keys::factor(points);
    const int stripe = threadIdx.x / kWarp * kTileRows;
    constexpr int steps = kTileBytes / kStep;  // all of them: behind a row's end the tile holds zeros
    typename Arithmetic::Rows in_registers[KTiles];
    Sum own[2];
    Best<Sum, 1> best[2];
    best[0].clear();
    best[1].clear();
    for (int first = 0; first < args.pivots; first += kPivots) {
        const int columns = min(kPivots, args.pivots - first), tiles = (columns + kTileColumns - 1) / kTileColumns;
        const int i = threadIdx.x, pivot = i - kRows;
        const bool real = pivot < 0 ? i < rows : pivot < columns;
        const u32 id = !real ? 0 : pivot < 0 ? args.order[begin + i] : node.pivot(args, first + pivot);
        if (first > 0) __syncthreads();  // the pivots before are still being read
        if (i < kRows + kPivots) ids[i] = id;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < KTiles; ++k) {
            std::uint8_t* stage = tile + k * Shape::kStageBytes;
            if (first == 0) load_rows<kThreads, kRows>(stage, 0, ids, rows, kRows, points, k);
            load_rows<kThreads, kPivots>(stage, kRows, ids + kRows, columns, tiles * kTileColumns, points, k);
        }
        commit_loads();
        if (i < kRows + kPivots)
            terms[i] = real ? Keys::term(points, id, pivot < 0 ? 0 : first + pivot) : Keys::no_term();
        wait_loads<0>();
        __syncthreads();
        if (first == 0) {
            own[0] = terms[stripe + lane_id() / 4];
            own[1] = terms[stripe + lane_id() / 4 + 8];
#pragma unroll
            for (int k = 0; k < KTiles; ++k)
                Arithmetic::load(in_registers[k], tile + k * Shape::kStageBytes, stripe, steps);
        }
#pragma unroll 4
        for (int t = 0; t < tiles; ++t) {
            Sum sum[4] = {};
#pragma unroll
            for (int k = 0; k < KTiles; ++k)
                Arithmetic::multiply(sum, in_registers[k], tile + k * Shape::kStageBytes, kRows + t * kTileColumns,
                                     steps);
            const int c = t * kTileColumns + lane_id() % 4 * 2;
            Sum key[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                key[j] = Keys::make(sum[j], factor, Keys::pair_term(terms[kRows + c + j % 2], own[j / 2]),
                                    first + c + j % 2);
            best[0].take(key[0], key[1]);
            best[1].take(key[2], key[3]);
        }
    }
    node.put<Keys>(args, best, begin + stripe, rows - stripe);
}

}  // namespace gnnd::cuda
