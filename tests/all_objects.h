// SPDX-License-Identifier: MIT
#pragma once
/// \file all_objects.h
/// Graphs beside the exact neighbours of their objects.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gnnd/builder.h"
#include "tests/reference.h"

namespace gnnd::test {

/// Distances rank by rank: which of equally far objects a list has does not count.
/// \param rows  row i of the graph belongs to objects[i]; otherwise it has one for every object
inline void expect_exact(const VectorView& vectors, const KnnGraph& graph, const std::vector<std::int32_t>& objects,
                         bool rows = false) {
    const int k = int(graph.k());
    const KnnGraph truth = exact_neighbors(vectors, objects.data(), std::int64_t(objects.size()), k, graph.metric());
    int wrong = 0;
    for (std::size_t i = 0; i < objects.size(); ++i)
        for (int j = 0; j < k; ++j) {
            const float found = graph.distances_of(rows ? std::int64_t(i) : objects[i])[j],
                        wanted = truth.distances_of(i)[j];
            const Reference scale = reference_distance(vectors, graph.metric(), objects[i], truth.ids_of(i)[j]);
            if (std::abs(found - wanted) > tolerance(scale) && ++wrong < 5)
                ADD_FAILURE() << "object " << objects[i] << ", neighbour " << j << ": " << found << " instead of "
                              << wanted;
        }
    EXPECT_EQ(wrong, 0);
}

inline std::vector<std::int32_t> all_of(std::int64_t n) {
    std::vector<std::int32_t> objects(n);
    std::iota(objects.begin(), objects.end(), 0);
    return objects;
}

}  // namespace gnnd::test
