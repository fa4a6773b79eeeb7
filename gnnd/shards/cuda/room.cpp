// SPDX-License-Identifier: MIT
#include "gnnd/shards/cuda/room.h"

#include <algorithm>
#include <array>
#include <string>

#include "gnnd/cuda/all_pairs/nearest_of.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/piece.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

/// For what the blocks of a build or a measurement leave between them.
constexpr std::size_t kBetweenBlocks = 4096;

/// Ids, or distances, of so many bytes each.
std::size_t graph_bytes(std::int64_t rows, std::int64_t k, std::size_t bytes) {
    return Piece::aligned(std::size_t(rows * k) * bytes);
}

/// Only the shape of rows of the base.
VectorView rows_of(const shards::Manifest& manifest, std::int64_t rows) {
    return {nullptr, rows, manifest.base.d, manifest.base.dtype, 0};
}

/// Building the largest shard, and merging the two largest, whose graphs take no memory beside what they lie in.
std::array<detail::Input, 2> largest_tasks(const shards::Manifest& manifest) {
    const VectorView shard = rows_of(manifest, manifest.most_rows());
    return {{{{shard}, {}}, {{shard, shard}, {}}}};
}

MemoryPlan plan_of(const detail::Input& input, const BuildParams& params) {
    MemoryPlan plan = cuda::plan(input, params, detail::resolve(params, input, params.device));
    if (plan.choices.parts > 1)
        throw OutOfDeviceMemory("all pairs of " + std::to_string(input.n()) + " objects do not fit at once");
    return plan;
}

std::size_t bytes_to_measure(const shards::Manifest& manifest) {
    const BuildParams& params = manifest.params;
    if (params.recall == 0 || params.recall == 1) return 0;
    return bytes_of_nearest_of(rows_of(manifest, manifest.most_rows()),
                               std::min(manifest.base.n, detail::kRecallObjects), detail::recall_at_of(params),
                               params.metric);
}

}  // namespace

ShardSizes::ShardSizes(const shards::Manifest& manifest)
    : row(std::size_t(manifest.base.d) * size_of(manifest.base.dtype)),
      vectors(Piece::aligned(std::size_t(manifest.most_rows()) * row)),
      local(graph_bytes(manifest.most_rows(), manifest.local_columns(), sizeof(std::int32_t))),
      result(graph_bytes(2 * manifest.most_rows(), manifest.params.k, sizeof(std::int32_t))),
      list_ids(graph_bytes(manifest.most_rows(), manifest.params.k, std::size_t(manifest.id_bytes))),
      list_distances(graph_bytes(manifest.most_rows(), manifest.params.k, sizeof(float))) {}

MemoryPlan plan_of_whole(const shards::Manifest& manifest, const BuildParams& params) {
    return plan_of({{rows_of(manifest, manifest.base.n)}, {}}, params);
}

Room room_for(const shards::Manifest& manifest, const BuildParams& params, const shards::ExecutorOptions& options) {
    if (manifest.base.n < 2 * manifest.count()) return {};  // build() wants two objects
    const ShardSizes sizes(manifest);
    try {
        // As if from host memory: a merge's vectors are copied to one place.
        std::size_t work = bytes_to_measure(manifest), free = 0;
        for (const detail::Input& task : largest_tasks(manifest)) {
            const MemoryPlan plan = plan_of(task, params);
            // A deterministic build makes do with less for the sake of device_memory only, not of a piece of it.
            const Choices wanted = detail::resolve(params, task, params.device);
            const bool modest = plan.choices.samples != wanted.samples || plan.choices.list_size != wanted.list_size;
            if (params.deterministic && modest) return {};
            work = std::max(work, plan.vectors + plan.work);
            free = plan.free;
        }
        work = Piece::aligned(work + kBetweenBlocks);
        const std::size_t fixed = 2 * sizes.result + work;
        // The free memory leaves room for the driver already: kMemoryReserve.
        std::size_t bytes = free / std::size_t(options.waiting);
        if (params.device_memory != 0) bytes = std::min(bytes, std::size_t(params.device_memory / options.workers));
        const int count = manifest.count(), least = std::min(3, count);
        if (bytes < fixed + std::size_t(least) * sizes.shard()) return {};
        return {work, int(std::min<std::size_t>(count, (bytes - fixed) / sizes.shard()))};
    } catch (const OutOfDeviceMemory&) {
        return {};
    }
}

}  // namespace gnnd::cuda
