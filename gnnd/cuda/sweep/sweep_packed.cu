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

template <PackedType C, bool Both, bool Resident>
void start(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns, int threads, int stages, int bytes,
           const Limits& limits, cudaStream_t stream) {
    const u32 panels = panels_of(args.rows, kPanelRows), width = args.end - args.begin;
    const u32 wanted = u32(limits.multiprocessors) * kBlocksEach;
    const u32 per_block =
        std::max(u32(std::clamp<u64>(u64(panels) * width / wanted, 1, kMostPanels)), least_per_block(width));
    dim3 blocks(panels, (width + per_block - 1) / per_block);
    CUtensorMap rows_map{}, columns_map{};
    if (threads == kPipelinedThreads) {
        rows_map = rows_as_tensor(rows.rows, rows.count, rows.row_bytes, kTileBytes, kPanelRows / 2);
        columns_map = rows_as_tensor(columns.rows, columns.count, columns.row_bytes, kTileBytes, kPanelColumns);
    }
    const u32 cluster = Resident ? 1 : kSharing;
    blocks.x *= cluster;
    launch_clusters("sweep", sweep_kernel<C, Both, Resident>, blocks, cluster, threads, bytes, stream, args, rows,
                    columns, rows_map, columns_map, per_block, stages);
}

template <PackedType C, bool Both>
void choose(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns, cudaStream_t stream) {
    const Limits limits = limits_of_device();
    cudaFuncAttributes attributes{};
    GNND_CUDA(cudaFuncGetAttributes(&attributes, sweep_kernel<C, Both, true>));
    const int threads = attributes.maxThreadsPerBlock;
    if (threads != kPipelinedThreads)
        return start<C, Both, true>(args, rows, columns, kPlainThreads, 0,
                                    2 * (kRowsTile + kColumnsTile) + kTermBytes + kQueueBytes, limits, stream);
    constexpr int kFixed = kSweepBarriers + kQueueBytes;
    const int resident = kFixed + (rows.row_bytes + kTileBytes - 1) / kTileBytes * kRowsTile;
    const int stages = std::min((limits.shared_bytes - resident) / (kColumnsTile + kTermBytes), kMostStages);
    if (stages >= kFewestStages)
        return start<C, Both, true>(args, rows, columns, threads, stages,
                                    resident + stages * (kColumnsTile + kTermBytes), limits, stream);
    constexpr int kStageBytes = kRowsTile + kColumnsTile + kTermBytes;
    const int streamed = std::min((limits.shared_bytes - kFixed) / kStageBytes, kMostStages);
    start<C, Both, false>(args, rows, columns, threads, streamed, kFixed + streamed * kStageBytes, limits, stream);
}

template <PackedType C>
void choose(const SweepArgs& args, const SweptRows& rows, const SweptRows& columns, cudaStream_t stream) {
    if (args.row_ids == nullptr)
        choose<C, true>(args, rows, columns, stream);
    else
        choose<C, false>(args, rows, columns, stream);
}

}  // namespace

void sweep_packed(PackedType type, const SweepArgs& args, const SweptRows& rows, const SweptRows& columns,
                  cudaStream_t stream) {
    if (args.begin >= args.end || args.rows == 0) return;
    visit(type, [&](auto packed) { choose<packed.value>(args, rows, columns, stream); });
}

}  // namespace gnnd::cuda
