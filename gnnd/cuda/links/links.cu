// SPDX-License-Identifier: MIT
// search_links() and prune_rows() on the GPU.
#include <algorithm>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/links/link_space.h"
#include "gnnd/cuda/links/links.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/callbacks.h"

namespace gnnd::cuda {
namespace {

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
    const bool links_here = on_device(links);
    const std::int64_t n = vectors.n;
    LinkSpace space(vectors, graph, params.degree, links_here, 0, resources, stream);
    const LinkPlan& plan = space.plan();
    auto *offsets = space.at<u64>(plan.offsets), *edges = space.at<u64>(plan.edges);
    const Links made{links_here ? links : space.at<std::int32_t>(plan.links), space.at<u32>(plan.sizes),
                     space.at<u32>(plan.counts), params.degree};
    GNND_CUDA(cudaMemsetAsync(made.counts, 0, plan.counts.bytes, stream));
    space.prune(made, nullptr, n, keeping_device(callbacks, params.device.index));
    allocate_offsets(made.counts, offsets, n, nullptr, stream);
    scatter_links_kernel<<<blocks_for(n, kLinkWarps), kLinkWarps * kWarp, 0, stream>>>(made, offsets, edges, n);
    GNND_LAUNCHED("scatter_links_kernel");
    complete(made, offsets, edges, space.graph_ids(), params.fill ? graph.k : 0, n, stream);
    if (!links_here)
        copy_out(links, made.ids, std::size_t(n) * params.degree * sizeof(std::int32_t), resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

void prune_rows(const VectorView& vectors, const KnnGraphView& graph, const std::int32_t* objects, std::int64_t count,
                const LinkParams& params, std::int32_t* links, const Callbacks& callbacks, Resources& resources) {
    const UseDevice device(params.device.index);
    const OwnedStream stream(resources);
    LinkSpace space(vectors, graph, params.degree, false, count, resources, stream);
    const LinkPlan& plan = space.plan();
    const Links made{space.at<std::int32_t>(plan.links), space.at<u32>(plan.sizes), nullptr, params.degree};
    auto* listed = space.at<std::int32_t>(plan.objects);
    copy_in(listed, objects, count, sizeof(std::int32_t), sizeof(std::int32_t), resources, stream);
    GNND_CUDA(cudaMemsetAsync(made.ids, 0xff, plan.links.bytes, stream));
    space.prune(made, listed, count, keeping_device(callbacks, params.device.index));
    copy_out(links, made.ids, plan.links.bytes, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace gnnd::cuda
