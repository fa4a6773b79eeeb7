// SPDX-License-Identifier: MIT
#pragma once
/// \file sample_graph.h
/// k-NN graphs over some of the objects, for links that lead farther than the graph over all.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/search_links.h"

namespace gnnd::detail {

/// Copies of some vectors, and the graph over them, whose ids are their numbers among these.
struct SampleGraph {
    /// \param all      vectors on the host
    /// \param objects  `count` of them, at least two
    /// \param k        neighbours of each; fewer where there are not so many others, or more than a graph holds
    /// \param params   the device that builds, and threads
    SampleGraph(const VectorView& all, const std::int32_t* objects, std::int64_t count, std::int64_t k, Metric metric,
                const LinkParams& params, const Callbacks& callbacks, Resources* resources);
    SampleGraph(const SampleGraph&) = delete;
    SampleGraph& operator=(const SampleGraph&) = delete;

    std::vector<std::byte> bytes;
    VectorView vectors;  ///< count x d, where `bytes` are
    KnnGraph graph;
};

}  // namespace gnnd::detail
