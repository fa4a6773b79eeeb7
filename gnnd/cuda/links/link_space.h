// SPDX-License-Identifier: MIT
#pragma once
/// \file link_space.h
/// What the kernels that choose links work on.

#include <algorithm>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/wait.h"

namespace gnnd::cuda {

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
        constexpr std::int64_t kAtOnce = 1 << 20;  // between two questions to the interrupt callback
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

}  // namespace gnnd::cuda
