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

/// Objects of a block where rows fit one tile: they and all pivots lie in shared memory together.
inline constexpr int kShortRows = 256;
static_assert(kWindow % kShortRows == 0 && kMaxPivots == kShortRows);
inline constexpr int kShortBytes = (kShortRows + kMaxPivots) * kTileBytes;

/// The same for rows of one tile of kTileBytes.
template <class Arithmetic>
__global__ void __launch_bounds__(2 * kShortRows, 3) assign_short_rows_kernel(Points points, AssignToPivotsArgs args) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, std::is_same_v<Sum, int>>;
    extern __shared__ __align__(1024) std::uint8_t tile[];  // the rows, and behind them the pivots'
    __shared__ u32 ids[kShortRows + kMaxPivots];
    __shared__ __align__(8) Sum terms[kShortRows + kMaxPivots];
    const std::int64_t begin = std::int64_t(blockIdx.x) * kShortRows;
    const Node node(points, args, begin);
    const int rows = int(min(std::int64_t(kShortRows), points.n - begin));
    const int i = threadIdx.x, pivot = i - kShortRows;
    const bool real = pivot < 0 ? i < rows : pivot < args.pivots;
    const u32 id = !real ? 0 : pivot < 0 ? args.order[begin + i] : node.pivot(args, pivot);
    ids[i] = id;
    __syncthreads();
    const int tiles = (args.pivots + kTileColumns - 1) / kTileColumns;
    load_rows<2 * kShortRows, kShortRows>(tile, 0, ids, rows, kShortRows, points, 0);
    load_rows<2 * kShortRows, kMaxPivots>(tile, kShortRows, ids + kShortRows, args.pivots, tiles * kTileColumns, points,
                                          0);
    commit_loads();
    terms[i] = real ? Keys::term(points, id, max(pivot, 0)) : Keys::no_term();
    wait_loads<0>();
    __syncthreads();

    const Sum factor = Keys::factor(points);
    const int stripe = threadIdx.x / kWarp * kTileRows;
    const Sum own[2] = {terms[stripe + lane_id() / 4], terms[stripe + lane_id() / 4 + 8]};
    Best<Sum, 1> best[2];
    best[0].clear();
    best[1].clear();
    constexpr int steps = kTileBytes / kStep;  // all of them: behind a row's end the tile holds zeros
    typename Arithmetic::Rows in_registers;
    Arithmetic::load(in_registers, tile, stripe, steps);
#pragma unroll 4
    for (int t = 0; t < tiles; ++t) {
        Sum sum[4] = {};
        Arithmetic::multiply(sum, in_registers, tile, kShortRows + t * kTileColumns, steps);
        const int c = t * kTileColumns + lane_id() % 4 * 2;
        Sum key[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            key[j] = Keys::make(sum[j], factor, Keys::pair_term(terms[kShortRows + c + j % 2], own[j / 2]), c + j % 2);
        best[0].take(key[0], key[1]);
        best[1].take(key[2], key[3]);
    }
    node.put<Keys>(args, best, begin + stripe, rows - stripe);
}

}  // namespace gnnd::cuda
