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
    /// \param vectors  on the host
    /// \param objects  `count` of them, at least two
    /// \param k        neighbours of each; where there are fewer others, or a graph has no room for so many, as many as
    /// can be \param params   the device that builds, and threads
    SampleGraph(const VectorView& vectors, const std::int32_t* objects, std::int64_t count, std::int64_t k,
                Metric metric, const LinkParams& params, const Callbacks& callbacks, Resources* resources);

    std::vector<std::byte> bytes;
    VectorView vectors;  ///< count x d, where `bytes` are
    KnnGraph graph;
};

}  // namespace gnnd::detail
