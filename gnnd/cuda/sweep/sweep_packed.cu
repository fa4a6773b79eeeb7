// SPDX-License-Identifier: MIT
// Starts a sweep on tensor cores: how rows lie in shared memory, and how many columns a block takes.
#include <algorithm>

#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/runtime/driver.h"
#include "gnnd/cuda/sweep/sweep.cuh"

namespace gnnd::cuda {
namespace {

constexpr int kFewestStages = 2, kMostStages = 6;
/// Blocks that a launch should have at least for each multiprocessor, so that the last ones do not run alone.
constexpr int kBlocksEach = 8;
/// Panels of columns that blocks which run together go through: their rows should stay in the cache.
constexpr u32 kMostPanels = 64;

struct Limits {
    int multiprocessors, shared_bytes;
};

Limits limits_of_device() {
    int device = 0;
    Limits limits{};
    GNND_CUDA(cudaGetDevice(&device));
    GNND_CUDA(cudaDeviceGetAttribute(&limits.multiprocessors, cudaDevAttrMultiProcessorCount, device));
    GNND_CUDA(cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return limits;
}

/// Panels of columns that a block takes, of so many.
u32 panels_each(u32 panels, u32 width, const Limits& limits) {
    const u32 wanted = u32(limits.multiprocessors) * kBlocksEach;
    return std::max(u32(std::clamp<u64>(u64(panels) * width / wanted, 1, kMostPanels)), least_per_block(width));
}

/// \param groups  of a sample's columns at most
/// \return how many there are
template <PackedType C, Compared What, bool Resident>
u32 start(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns, u32 groups, int threads, int stages,
          int bytes, const Limits& limits, cudaStream_t stream) {
    const u32 panels = panels_of(args.rows, kPanelRows), width = args.end - args.begin;
    const u32 cluster = Resident ? 1 : kSharing;
    const u32 per_block =
        What == Compared::sample ? panels_of(width, groups / cluster) : panels_each(panels, width, limits);
    const dim3 blocks(panels * cluster, panels_of(width, per_block));
    CUtensorMap rows_map{}, columns_map{};
    if (threads == kPipelinedThreads) {
        rows_map = rows_as_tensor(rows.rows, rows.count, rows.row_bytes, kTileBytes, kPanelRows / 2);
        columns_map = rows_as_tensor(columns.rows, columns.count, columns.row_bytes, kTileBytes, kPanelColumns);
    }
    launch_clusters("sweep", sweep_kernel<C, What, Resident>, blocks, cluster, threads, bytes, stream, args, rows,
                    columns, rows_map, columns_map, per_block, stages);
    return blocks.y * cluster;
}

template <PackedType C, Compared What>
u32 choose(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns, u32 groups, cudaStream_t stream) {
    const Limits limits = limits_of_device();
    cudaFuncAttributes attributes{};
    GNND_CUDA(cudaFuncGetAttributes(&attributes, sweep_kernel<C, What, true>));
    const int threads = attributes.maxThreadsPerBlock;
    if (threads != kPipelinedThreads)
        return start<C, What, true>(args, rows, columns, groups, kPlainThreads, 0,
                                    2 * (kRowsTile + kColumnsTile) + kTermBytes + kQueueBytes, limits, stream);
    constexpr int kFixed = kSweepBarriers + kQueueBytes;
    const int resident = kFixed + (rows.row_bytes + kTileBytes - 1) / kTileBytes * kRowsTile;
    const int stages = std::min((limits.shared_bytes - resident) / (kColumnsTile + kTermBytes), kMostStages);
    if (stages >= kFewestStages)
        return start<C, What, true>(args, rows, columns, groups, threads, stages,
                                    resident + stages * (kColumnsTile + kTermBytes), limits, stream);
    constexpr int kStageBytes = kRowsTile + kColumnsTile + kTermBytes;
    const int streamed = std::min((limits.shared_bytes - kFixed) / kStageBytes, kMostStages);
    return start<C, What, false>(args, rows, columns, groups, threads, streamed, kFixed + streamed * kStageBytes,
                                 limits, stream);
}

}  // namespace

void sweep_packed(PackedType type, Compared what, const SweepArgs& args, const SweptRows& rows,
                  const SweptRows& columns, cudaStream_t stream) {
    if (args.begin >= args.end || args.rows == 0) return;
    visit(type, [&](auto packed) {
        if (what == Compared::pairs)
            choose<packed.value, Compared::pairs>(args, rows, columns, 0, stream);
        else
            choose<packed.value, Compared::chosen>(args, rows, columns, 0, stream);
    });
}

u32 sweep_sample(PackedType type, const SweepArgs& args, const SweptRows& rows, const SweptRows& columns, u32 most,
                 cudaStream_t stream) {
    return visit(
        type, [&](auto packed) { return choose<packed.value, Compared::sample>(args, rows, columns, most, stream); });
}

}  // namespace gnnd::cuda
