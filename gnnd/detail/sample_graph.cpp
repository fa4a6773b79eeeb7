// SPDX-License-Identifier: MIT
#include "gnnd/detail/sample_graph.h"

#include <algorithm>
#include <cstring>

#include "gnnd/cpu/parallel.h"

namespace gnnd::detail {

SampleGraph::SampleGraph(const VectorView& all, const std::int32_t* objects, std::int64_t count, std::int64_t k,
                         Metric metric, const LinkParams& params, const Callbacks& callbacks, Resources* resources)
    : bytes(std::size_t(count * all.d) * size_of(all.dtype)), vectors{bytes.data(), count, all.d, all.dtype, 0} {
    constexpr std::int64_t kChunk = 1024;
    const std::size_t row = std::size_t(all.d) * size_of(all.dtype);
    const cpu::Team team{cpu::Team::resolve(params.threads), &callbacks.interrupt};
    team.for_chunks(count, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            std::memcpy(bytes.data() + std::size_t(i) * row, all.row(objects[i]), row);
    });
    BuildParams building;
    building.k = int(std::min({k, std::int64_t(kMaxK), count - 1}));
    building.metric = metric;
    building.device = params.device;
    building.threads = params.threads;
    graph = build(vectors, building, callbacks, resources).graph;
}

}  // namespace gnnd::detail
