// SPDX-License-Identifier: MIT
// search_links() and prune_rows() on the GPU.
#include <algorithm>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/links/links.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/callbacks.h"
#include "gnnd/cuda/runtime/wait.h"

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

/// The vectors as kernels compare them, the graph, and room for links, on the device.
class LinkSpace {
  public:
    /// \param some  as for make_link_plan()
    LinkSpace(const VectorView& vectors, const KnnGraphView& graph, int degree, bool links_here, std::int64_t some,
              Resources& resources, cudaStream_t stream)
        : graph_(graph),
          plan_(make_link_plan(vectors, on_device(vectors.data), graph.k, on_device(graph.ids), graph.metric, degree,
                               links_here, some, resources.free_device_memory())),
          memory_(resources, plan_.total, stream),
          stream_(stream) {
        const RawVectors raw =
            upload({{vectors}, {}}, on_device(vectors.data), memory_.data() + plan_.vectors.offset, resources, stream);
        if (!on_device(graph.ids)) {
            const std::size_t row = std::size_t(graph.k) * sizeof(std::int32_t);
            copy_in(at<std::int32_t>(plan_.graph), graph.ids, graph.n, row, row, resources, stream);
            graph_.ids = at<std::int32_t>(plan_.graph);
        }
        auto* info = at<SpaceInfo>(plan_.info);
        find_integers(raw, graph.metric, plan_, &info->largest, stream);
        std::uint8_t* rows = plan_.vectors_in_place ? nullptr : at<std::uint8_t>(plan_.rows);
        prepare_space(raw, graph.metric, plan_, rows, at<u32>(plan_.bias), at<float>(plan_.edges), info, stream);
        points_ = points_of(raw, graph.metric, plan_, rows, at<u32>(plan_.bias));
    }

    template <class T>
    T* at(const Part& part) const {
        return reinterpret_cast<T*>(memory_.data() + part.offset);
    }
    const LinkPlan& plan() const { return plan_; }
    const std::int32_t* graph_ids() const { return graph_.ids; }

    /// Step 1 for `count` objects.
    /// \param objects  as in PruneArgs
    void prune(const Links& links, const std::int32_t* objects, std::int64_t count, const Callbacks& callbacks) {
        for (std::int64_t first = 0; first < count; first += kAtOnce) {
            engine_for(plan_.packed, graph_.metric)
                .prune(points_,
                       {.graph = graph_.ids,
                        .k = graph_.k,
                        .links = links,
                        .first = first,
                        .count = std::min(kAtOnce, count - first),
                        .objects = objects},
                       stream_);
            await(stream_, callbacks);
        }
    }

  private:
    KnnGraphView graph_;
    LinkPlan plan_;
    DeviceMemory memory_;
    cudaStream_t stream_;
    Drain drain_{stream_};
    Points points_{};
};

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
    complete(made, offsets, edges, space.graph_ids(), graph.k, n, stream);
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
