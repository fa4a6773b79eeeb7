// SPDX-License-Identifier: MIT
// search_links() on the GPU.
#include <algorithm>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/links/links.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/wait.h"

namespace gnnd::cuda {
namespace {

/// Objects between two questions to the interrupt callback.
constexpr std::int64_t kAtOnce = 1 << 20;

void complete(const Links& links, const u64* offsets, const u64* edges, const std::int32_t* graph, std::int64_t k,
              std::int64_t n, cudaStream_t stream) {
    const auto start = [&]<int Chunks>(std::integral_constant<int, Chunks>) {
        complete_kernel<Chunks>
            <<<blocks_for(n, kLinkWarps), kLinkWarps * kWarp, 0, stream>>>(links, offsets, edges, graph, k, n);
        GNND_LAUNCHED("complete_kernel");
    };
    static_assert(kMaxGpuDegree == 4 * kWarp);
    if (links.degree <= kWarp)
        start(std::integral_constant<int, 1>());
    else if (links.degree <= 2 * kWarp)
        start(std::integral_constant<int, 2>());
    else
        start(std::integral_constant<int, 4>());
}

}  // namespace

void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params, std::int32_t* links,
                  const Callbacks& callbacks, Resources& resources) {
    const UseDevice device(params.device.index);
    const OwnedStream stream(resources);
    const bool vectors_here = on_device(vectors.data), graph_here = on_device(graph.ids), links_here = on_device(links);
    const std::int64_t n = vectors.n;
    LinkPlan plan = make_link_plan(vectors, vectors_here, graph.k, graph_here, graph.metric, params.degree, links_here,
                                   resources.free_device_memory());
    const DeviceMemory memory(resources, plan.total, stream);
    const Drain drain(stream);
    const auto at = [&]<class T>(const Part& part, T*) { return reinterpret_cast<T*>(memory.data() + part.offset); };
    const auto words = [&](const Part& part) { return at(part, static_cast<u32*>(nullptr)); };
    const auto ids_at = [&](const Part& part) { return at(part, static_cast<std::int32_t*>(nullptr)); };
    u64 *offsets = at(plan.offsets, static_cast<u64*>(nullptr)), *edges = at(plan.edges, static_cast<u64*>(nullptr));

    const RawVectors raw =
        upload({{vectors}, {}}, vectors_here, memory.data() + plan.vectors.offset, resources, stream);
    const std::int32_t* graph_ids = graph.ids;
    if (!graph_here) {
        const std::size_t row = std::size_t(graph.k) * sizeof(std::int32_t);
        copy_in(ids_at(plan.graph), graph.ids, n, row, row, resources, stream);
        graph_ids = ids_at(plan.graph);
    }
    SpaceInfo* info = at(plan.info, static_cast<SpaceInfo*>(nullptr));
    find_integers(raw, graph.metric, plan, &info->largest, stream);
    std::uint8_t* rows = plan.vectors_in_place ? nullptr : at(plan.rows, static_cast<std::uint8_t*>(nullptr));
    prepare_space(raw, graph.metric, plan, rows, words(plan.bias), at(plan.edges, static_cast<float*>(nullptr)), info,
                  stream);

    const Points points = points_of(raw, graph.metric, plan, rows, words(plan.bias));
    const Links made{links_here ? links : ids_at(plan.links), words(plan.sizes), words(plan.counts), params.degree};
    GNND_CUDA(cudaMemsetAsync(made.counts, 0, plan.counts.bytes, stream));
    for (std::int64_t first = 0; first < n; first += kAtOnce) {
        engine_for(plan.packed, graph.metric)
            .prune(points,
                   {.graph = graph_ids,
                    .k = graph.k,
                    .links = made,
                    .first = first,
                    .count = std::min(kAtOnce, n - first)},
                   stream);
        await(stream, callbacks);
    }
    allocate_offsets(made.counts, offsets, n, nullptr, stream);
    scatter_links_kernel<<<blocks_for(n, kLinkWarps), kLinkWarps * kWarp, 0, stream>>>(made, offsets, edges, n);
    GNND_LAUNCHED("scatter_links_kernel");
    complete(made, offsets, edges, graph_ids, graph.k, n, stream);
    if (!links_here)
        copy_out(links, made.ids, std::size_t(n) * params.degree * sizeof(std::int32_t), resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace gnnd::cuda
