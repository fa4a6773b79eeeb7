// SPDX-License-Identifier: MIT
#pragma once
/// \file shard_graph.h
/// A graph in shards as one in memory.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gnnd/graph.h"
#include "gnnd/sharded.h"

namespace gnnd::test {

/// All rows, with ids as graphs have them.
inline KnnGraph read_all(const ShardedGraph& sharded) {
    KnnGraph graph(sharded.n(), sharded.k(), sharded.metric());
    std::vector<std::int64_t> ids(std::size_t(graph.n() * graph.k()));
    sharded.read(0, graph.n(), ids.data(), graph.distances());
    std::copy(ids.begin(), ids.end(), graph.ids());
    return graph;
}

}  // namespace gnnd::test
