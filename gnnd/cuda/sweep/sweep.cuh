// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep.cuh
/// All pairs of a set, of chosen rows with the set, or of the set with a sample, on tensor cores. A block takes a panel
/// of kPanelRows rows and compares it with many columns, kPanelColumns at a time.
///
/// On Hopper one more warp brings the tiles (pipeline.cuh), and each group of four warps has 64 of the rows and goes
/// through the tiles on its own: while one looks for hits, the tensor cores work for the others. Where rows are too
/// long to stay in shared memory, two blocks on neighbouring multiprocessors have the same rows and every second tile
/// of columns, and each brings half of the rows for both. Elsewhere all warps copy, wait and compute together.

#include "gnnd/cuda/device/wgmma.cuh"
#include "gnnd/cuda/sweep/hits.cuh"
#include "gnnd/cuda/sweep/maxima.cuh"
#include "gnnd/cuda/sweep/pipeline.cuh"
#include "gnnd/cuda/sweep/sweep_launch.h"

namespace gnnd::cuda {

inline constexpr int kSweepWarps = kPanelRows / kTileRows;  ///< that compute
/// Threads of a block where there is a copy engine, with four warps that order copies, and where there is none. The
/// host sees from a kernel's largest block which of the two was compiled for the device.
inline constexpr int kPipelinedThreads = (kSweepWarps + 4) * kWarp, kPlainThreads = kSweepWarps * kWarp;
inline constexpr int kRowsTile = kPanelRows * kTileBytes, kColumnsTile = kPanelColumns * kTileBytes;
inline constexpr int kTermBytes = kPanelColumns * int(sizeof(Threshold));  ///< of a tile's columns
inline constexpr int kSweepBarriers = 1024;                                ///< bytes for them
inline constexpr int kQueueBytes = kSweepWarps * int(sizeof(HitQueue::Places));
inline constexpr u32 kSharing = 2;  ///< blocks that share rows

template <Compared What, u32 Share = 1>
using PanelWalk = TileWalk<What == Compared::pairs, kPanelRows, kPanelColumns, Share>;

template <class Sum, Compared What, u32 Share>
using Finder =
    std::conditional_t<What == Compared::sample, MaximaFinder<Sum, Share>, HitFinder<Sum, What == Compared::pairs>>;

#if GNND_HAS_WGMMA

struct SweepBarriers {
    static constexpr int kMaxStages = 16;
    PhaseBarrier rows, full[kMaxStages], read[kMaxStages];
};
static_assert(sizeof(SweepBarriers) <= kSweepBarriers);

/// \tparam Resident  the panel's rows stay in shared memory; otherwise their tiles come with every tile of columns, and
///                   kSharing blocks are a cluster
template <PackedType C, Compared What, bool Resident>
__device__ __forceinline__ void sweep_panel(const SweepArgs& args, const CUtensorMap& rows_map,
                                            const CUtensorMap& columns_map, int row_bytes, u32 per_block, int stages,
                                            std::uint8_t* shared) {
    using Sum = typename TensorProducts<C>::Sum;
    constexpr u32 kShare = Resident ? 1 : kSharing;
    const TileOrder tiles(row_bytes, args.high_tiles);
    const PanelWalk<What, kShare> walk(args, per_block);
    if (walk.count == 0) return;  // so does the block that it shares rows with
    auto& barriers = *reinterpret_cast<SweepBarriers*>(shared);
    std::uint8_t* const rows = shared + kSweepBarriers;
    std::uint8_t* const stage_memory = rows + (Resident ? tiles.stored * kRowsTile : 0);
    constexpr int kStageBytes = kColumnsTile + (Resident ? 0 : kRowsTile);
    auto* const term_memory = reinterpret_cast<Threshold*>(stage_memory + stages * kStageBytes);
    auto* const queues = reinterpret_cast<HitQueue::Places*>(term_memory + stages * kPanelColumns);
    const auto terms_of = [&](int stage) { return term_memory + stage * kPanelColumns; };
    const auto columns_of = [&](int stage) { return stage_memory + stage * kStageBytes; };

    const int warp = threadIdx.x / kWarp;
    if (threadIdx.x == 0) {
        barriers.rows.init(1);
        for (int s = 0; s < stages; ++s) {
            barriers.full[s].init(1);
            barriers.read[s].init(kSweepWarps * int(kShare));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    const auto sync_all = [] { Resident ? __syncthreads() : sync_cluster(); };
    sync_all();
    StageCursor at{stages};
    const int panel_row = int(walk.panel) * kPanelRows;
    // The warps that order copies leave registers to the others, of the 640 x 96 that a block starts with.
    if (warp >= kSweepWarps) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x != kPlainThreads) return;
        constexpr int kHalf = kPanelRows / 2;
        static_assert(kSharing == 2);
        const int half = int(blockIdx.x % kSharing);
        if (Resident) {
            barriers.rows.arrive_expecting(tiles.stored * kRowsTile);
            for (int i = 0; i < 2 * tiles.stored; ++i)
                copy_rows(rows + i * kHalf * kTileBytes, rows_map, i / 2 * kTileBytes, panel_row + i % 2 * kHalf,
                          barriers.rows);
        }
        for (u32 i = 0; i < walk.count; ++i) {
            const u32 column = walk.first_column(i);
            for (int k = 0; k < tiles.count(); ++k, at.advance()) {
                PhaseBarrier& full = barriers.full[at.stage];
                const bool last = k + 1 == tiles.count();
                barriers.read[at.stage].wait(at.phase ^ 1);
                full.arrive_expecting(kStageBytes + (last ? kTermBytes : 0));
                copy_rows(columns_of(at.stage), columns_map, tiles.of_column(k) * kTileBytes, int(column), full);
                if (!Resident)
                    copy_rows_to(0b11, columns_of(at.stage) + kColumnsTile + half * kHalf * kTileBytes, rows_map,
                                 tiles.of_row(k) * kTileBytes, panel_row + half * kHalf, full);
                if (!last) continue;
                copy_bytes(terms_of(at.stage), args.of_columns + column, kTermBytes, full);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    const int group = warp / 4 * kGroupRows;
    Finder<Sum, What, kShare> finder(args, queues[warp], walk.panel * kPanelRows + warp * kTileRows + lane_id() / 4);
    if (Resident) barriers.rows.wait(0);
    Sum sums[kPanelColumns / kTileColumns][4];
    const auto release = [&](int stage) {
        if (lane_id() < int(kShare)) {  // a block writes into the memory of both
            if (Resident)
                barriers.read[stage].arrive();
            else
                barriers.read[stage].arrive_at(u32(lane_id()));
        }
    };
    for (u32 i = 0; i < walk.count; ++i) {
        int before = -1;
        for (int k = 0; k < tiles.count(); ++k, at.advance()) {
            barriers.full[at.stage].wait(at.phase);
            const std::uint8_t* columns = columns_of(at.stage);
            const std::uint8_t* mine =
                (Resident ? rows + tiles.of_row(k) * kRowsTile : columns + kColumnsTile) + group * kTileBytes;
            start_products<C>(sums, mine, columns, k > 0);
            if (before >= 0) {
                wait_products<1>();
                release(before);
            }
            before = at.stage;
        }
        wait_products<0>();
        finder.find(sums, terms_of(before), walk.first_column(i), walk.diagonal(i));
        __syncwarp();
        release(before);
    }
    finder.end();
    // The other block writes into this one's memory as long as it lives.
    if (!Resident) sync_cluster();
}

#else

/// Starts copying the k-th tile of `padded` rows from `row` on; what is not there becomes zero.
__device__ inline void load_panel(std::uint8_t* tile, const SweptRows& from, std::int64_t row, int padded, int k) {
    constexpr int kChunks = kTileBytes / 16;
    for (int i = threadIdx.x; i < padded * kChunks; i += blockDim.x) {
        const int r = i / kChunks, chunk = i % kChunks;
        const bool real = row + r < from.count && k * kTileBytes + chunk * 16 < from.row_bytes;
        const std::uint8_t* source =
            real ? from.rows + (row + r) * from.row_bytes + k * kTileBytes + chunk * 16 : from.rows;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         u32(__cvta_generic_to_shared(tile + chunk_offset(r, chunk)))),
                     "l"(source), "r"(real ? 16 : 0));
    }
}

template <PackedType C, Compared What>
__device__ __forceinline__ void sweep_panel(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns,
                                            u32 per_block, std::uint8_t* shared) {
    using Arithmetic = TensorProducts<C>;
    using Sum = typename Arithmetic::Sum;
    constexpr int kStageBytes = kRowsTile + kColumnsTile;
    const TileOrder tiles(rows.row_bytes, args.high_tiles);
    const int warp = threadIdx.x / kWarp;
    const PanelWalk<What> walk(args, per_block);
    if (walk.count == 0) return;
    auto* const terms = reinterpret_cast<Threshold*>(shared + 2 * kStageBytes);
    auto* const queues = reinterpret_cast<HitQueue::Places*>(terms + kPanelColumns);
    Finder<Sum, What, 1> finder(args, queues[warp], walk.panel * kPanelRows + warp * kTileRows + lane_id() / 4);
    const auto fetch = [&](u32 i, int k) {
        std::uint8_t* stage = shared + (i * tiles.count() + k) % 2 * kStageBytes;
        load_panel(stage, rows, walk.panel * kPanelRows, kPanelRows, tiles.of_row(k));
        load_panel(stage + kRowsTile, columns, walk.first_column(i), kPanelColumns, tiles.of_column(k));
        commit_loads();
    };
    constexpr int kTiles = kPanelColumns / kTileColumns;
    Sum sums[kTiles][4];
    fetch(0, 0);
    for (u32 i = 0; i < walk.count; ++i) {
        const u32 column = walk.first_column(i);
        for (int c = threadIdx.x; c < kPanelColumns; c += blockDim.x) terms[c] = args.of_columns[column + c];
#pragma unroll
        for (int s = 0; s < kTiles * 4; ++s) sums[s / 4][s % 4] = 0;
        for (int k = 0; k < tiles.count(); ++k) {
            const bool more = k + 1 < tiles.count() || i + 1 < walk.count;
            if (more)
                k + 1 < tiles.count() ? fetch(i, k + 1) : fetch(i + 1, 0);
            else
                commit_loads();
            wait_loads<1>();
            __syncthreads();
            const std::uint8_t* stage = shared + (i * tiles.count() + k) % 2 * kStageBytes;
            const int steps = min(kTileBytes, rows.row_bytes - tiles.of_row(k) * kTileBytes) / kStep;
            typename Arithmetic::Rows mine;
            Arithmetic::load(mine, stage, warp * kTileRows, steps);
#pragma unroll
            for (int t = 0; t < kTiles; ++t)
                Arithmetic::multiply(sums[t], mine, stage + kRowsTile, t * kTileColumns, steps);
            __syncthreads();
        }
        finder.find(sums, terms, column, walk.diagonal(i));
        __syncthreads();
    }
    finder.end();
}

#endif

/// \param per_block  panels of columns that a block takes
/// \param stages     of shared memory, on Hopper
template <PackedType C, Compared What, bool Resident>
__global__ void __launch_bounds__(GNND_HAS_WGMMA ? kPipelinedThreads : kPlainThreads, 1)
    sweep_kernel(SweepArgs args, SweptRows rows, SweptRows columns, const __grid_constant__ CUtensorMap rows_map,
                 const __grid_constant__ CUtensorMap columns_map, u32 per_block, int stages) {
    extern __shared__ __align__(1024) std::uint8_t shared[];
#if GNND_HAS_WGMMA
    sweep_panel<C, What, Resident>(args, rows_map, columns_map, rows.row_bytes, per_block, stages, shared);
#else
    sweep_panel<C, What>(args, rows, columns, per_block, shared);
#endif
}

}  // namespace gnnd::cuda
