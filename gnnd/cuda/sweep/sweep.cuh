// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep.cuh
/// All pairs of a set, or of chosen rows with the set, on tensor cores. A block takes a panel of kPanelRows rows and
/// compares it with many columns, kPanelColumns at a time.
///
/// On Hopper one more warp brings the tiles (pipeline.cuh), and each group of four warps has 64 of the rows and goes
/// through the tiles on its own: while one looks for hits, the tensor cores work for the others. Elsewhere all warps
/// copy, wait and compute together.

#include "gnnd/cuda/sweep/hits.cuh"
#include "gnnd/cuda/sweep/pipeline.cuh"
#include "gnnd/cuda/sweep/sweep_launch.h"
#include "gnnd/cuda/sweep/wide_wgmma.cuh"

namespace gnnd::cuda {

inline constexpr int kSweepWarps = kPanelRows / kTileRows;  ///< that compute
/// Threads of a block where there is a copy engine, with four warps that order copies, and where there is none. The
/// host sees from a kernel's largest block which of the two was compiled for the device.
inline constexpr int kPipelinedThreads = (kSweepWarps + 4) * kWarp, kPlainThreads = kSweepWarps * kWarp;
inline constexpr int kRowsTile = kPanelRows * kTileBytes, kColumnsTile = kPanelColumns * kTileBytes;
inline constexpr int kTermBytes = kPanelColumns * int(sizeof(Threshold));  ///< of a tile's columns
inline constexpr int kSweepBarriers = 1024;                                ///< bytes for them

template <bool Both>
using PanelWalk = TileWalk<Both, kPanelRows, kPanelColumns>;

#if GNND_HAS_WGMMA

struct SweepBarriers {
    static constexpr int kMaxStages = 16;
    PhaseBarrier rows, full[kMaxStages], read[kMaxStages];
};
static_assert(sizeof(SweepBarriers) <= kSweepBarriers);

/// \tparam Resident  the panel's rows stay in shared memory; otherwise their tiles come with every tile of columns
template <PackedType C, bool Both, bool Resident>
__device__ __forceinline__ void sweep_panel(const SweepArgs& args, const CUtensorMap& rows_map,
                                            const CUtensorMap& columns_map, int row_bytes, u32 per_block, int stages,
                                            std::uint8_t* shared) {
    using Sum = typename TensorProducts<C>::Sum;
    using Finder = HitFinder<Sum, Both>;
    const int k_tiles = (row_bytes + kTileBytes - 1) / kTileBytes;
    const PanelWalk<Both> walk(args, per_block);
    if (walk.count == 0) return;
    auto& barriers = *reinterpret_cast<SweepBarriers*>(shared);
    std::uint8_t* const rows = shared + kSweepBarriers;
    std::uint8_t* const stage_memory = rows + (Resident ? k_tiles * kRowsTile : 0);
    constexpr int kStageBytes = kColumnsTile + (Resident ? 0 : kRowsTile);
    auto* const term_memory = reinterpret_cast<Threshold*>(stage_memory + stages * kStageBytes);
    const auto terms_of = [&](int stage) { return term_memory + stage * kPanelColumns; };
    const auto columns_of = [&](int stage) { return stage_memory + stage * kStageBytes; };

    const int warp = threadIdx.x / kWarp;
    if (threadIdx.x == 0) {
        barriers.rows.init(1);
        for (int s = 0; s < stages; ++s) {
            barriers.full[s].init(1);
            barriers.read[s].init(kSweepWarps);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    StageCursor at{stages};
    const int panel_row = int(walk.panel) * kPanelRows;
    const auto copy_panel = [&](std::uint8_t* to, int k, PhaseBarrier& full) {
        for (int half = 0; half < 2; ++half)
            copy_rows(to + half * kRowsTile / 2, rows_map, k * kTileBytes, panel_row + half * kPanelRows / 2, full);
    };
    // The warps that order copies leave registers to the others, of the 640 x 96 that a block starts with.
    if (warp >= kSweepWarps) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x != kPlainThreads) return;
        if (Resident) {
            barriers.rows.arrive_expecting(k_tiles * kRowsTile);
            for (int k = 0; k < k_tiles; ++k) copy_panel(rows + k * kRowsTile, k, barriers.rows);
        }
        for (u32 i = 0; i < walk.count; ++i) {
            const u32 column = walk.first_column(i);
            for (int k = 0; k < k_tiles; ++k, at.advance()) {
                PhaseBarrier& full = barriers.full[at.stage];
                const bool last = k + 1 == k_tiles;
                barriers.read[at.stage].wait(at.phase ^ 1);
                full.arrive_expecting(kStageBytes + (last ? kTermBytes : 0));
                copy_rows(columns_of(at.stage), columns_map, k * kTileBytes, int(column), full);
                if (!Resident) copy_panel(columns_of(at.stage) + kColumnsTile, k, full);
                if (!last) continue;
                copy_bytes(terms_of(at.stage), args.of_columns + column, kTermBytes, full);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    const int group = warp / 4 * kGroupRows;
    const Finder finder(args, walk.panel * kPanelRows + warp * kTileRows + lane_id() / 4);
    if (Resident) barriers.rows.wait(0);
    typename Finder::Sums sums;
    const auto release = [&](int stage) {
        if (lane_id() == 0) barriers.read[stage].arrive();
    };
    for (u32 i = 0; i < walk.count; ++i) {
        int before = -1;
        for (int k = 0; k < k_tiles; ++k, at.advance()) {
            barriers.full[at.stage].wait(at.phase);
            const std::uint8_t* columns = columns_of(at.stage);
            const std::uint8_t* mine = (Resident ? rows + k * kRowsTile : columns + kColumnsTile) + group * kTileBytes;
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

template <PackedType C, bool Both>
__device__ __forceinline__ void sweep_panel(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns,
                                            u32 per_block, std::uint8_t* shared) {
    using Arithmetic = TensorProducts<C>;
    using Finder = HitFinder<typename Arithmetic::Sum, Both>;
    constexpr int kStageBytes = kRowsTile + kColumnsTile;
    const int k_tiles = (rows.row_bytes + kTileBytes - 1) / kTileBytes, warp = threadIdx.x / kWarp;
    const PanelWalk<Both> walk(args, per_block);
    if (walk.count == 0) return;
    auto* const terms = reinterpret_cast<Threshold*>(shared + 2 * kStageBytes);
    const Finder finder(args, walk.panel * kPanelRows + warp * kTileRows + lane_id() / 4);
    const auto fetch = [&](u32 i, int k) {
        std::uint8_t* stage = shared + (i * k_tiles + k) % 2 * kStageBytes;
        load_panel(stage, rows, walk.panel * kPanelRows, kPanelRows, k);
        load_panel(stage + kRowsTile, columns, walk.first_column(i), kPanelColumns, k);
        commit_loads();
    };
    typename Finder::Sums sums;
    fetch(0, 0);
    for (u32 i = 0; i < walk.count; ++i) {
        const u32 column = walk.first_column(i);
        for (int c = threadIdx.x; c < kPanelColumns; c += blockDim.x) terms[c] = args.of_columns[column + c];
#pragma unroll
        for (int s = 0; s < Finder::kTiles * 4; ++s) sums[s / 4][s % 4] = 0;
        for (int k = 0; k < k_tiles; ++k) {
            const bool more = k + 1 < k_tiles || i + 1 < walk.count;
            if (more)
                k + 1 < k_tiles ? fetch(i, k + 1) : fetch(i + 1, 0);
            else
                commit_loads();
            wait_loads<1>();
            __syncthreads();
            const std::uint8_t* stage = shared + (i * k_tiles + k) % 2 * kStageBytes;
            const int steps = min(kTileBytes, rows.row_bytes - k * kTileBytes) / kStep;
            typename Arithmetic::Rows mine;
            Arithmetic::load(mine, stage, warp * kTileRows, steps);
#pragma unroll
            for (int t = 0; t < Finder::kTiles; ++t)
                Arithmetic::multiply(sums[t], mine, stage + kRowsTile, t * kTileColumns, steps);
            __syncthreads();
        }
        finder.find(sums, terms, column, walk.diagonal(i));
        __syncthreads();
    }
}

#endif

/// \param per_block  panels of columns that a block takes
/// \param stages     of shared memory, on Hopper
template <PackedType C, bool Both, bool Resident>
__global__ void __launch_bounds__(GNND_HAS_WGMMA ? kPipelinedThreads : kPlainThreads, 1)
    sweep_kernel(SweepArgs args, SweptRows rows, SweptRows columns, const __grid_constant__ CUtensorMap rows_map,
                 const __grid_constant__ CUtensorMap columns_map, u32 per_block, int stages) {
    extern __shared__ __align__(1024) std::uint8_t shared[];
#if GNND_HAS_WGMMA
    sweep_panel<C, Both, Resident>(args, rows_map, columns_map, rows.row_bytes, per_block, stages, shared);
#else
    sweep_panel<C, Both>(args, rows, columns, per_block, shared);
#endif
}

}  // namespace gnnd::cuda
