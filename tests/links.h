// SPDX-License-Identifier: MIT
#pragma once
/// \file links.h
/// Helpers that tests of search_links() share.

#include <cstdint>
#include <numeric>
#include <vector>

#include "gnnd/search_links.h"
#include "tests/cpu.h"
#include "tests/reference.h"

namespace gnnd::test {

inline KnnGraph exact_graph(const VectorView& vectors, Metric metric, int k) {
    std::vector<std::int32_t> all(vectors.n);
    std::iota(all.begin(), all.end(), 0);
    return exact_neighbors(vectors, all.data(), vectors.n, k, metric);
}

inline std::vector<std::int32_t> links_of(const VectorView& vectors, const KnnGraphView& graph,
                                          const LinkParams& params) {
    std::vector<std::int32_t> links(std::size_t(graph.n * params.degree), -7);
    search_links(vectors, graph, params, links.data());
    return links;
}

}  // namespace gnnd::test
