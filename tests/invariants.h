// SPDX-License-Identifier: MIT
#pragma once
/// \file invariants.h
/// Every graph that leaves a public function (gnnd/graph.h) must keep invariants, which are asserted here alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gnnd/graph.h"
#include "tests/reference.h"

namespace gnnd::test {

/// \param objects  row r of the graph belongs to objects[r]; null: to object r, and the graph has a row for every
/// object
inline void expect_valid_graph(const KnnGraphView& graph, const VectorView& vectors,
                               const std::vector<std::int32_t>* objects = nullptr) {
    ASSERT_EQ(graph.n, objects != nullptr ? std::int64_t(objects->size()) : vectors.n);
    const std::int64_t full = std::min(graph.k, vectors.n - 1);
    std::vector<float> rows(vectors.n * vectors.d);
    copy_as_f32(vectors, 0, vectors.n, rows.data());
    for (std::int64_t r = 0; r < graph.n; ++r) {
        const std::int64_t self = objects != nullptr ? (*objects)[r] : r;
        std::set<std::int32_t> seen;
        for (std::int64_t j = 0; j < graph.k; ++j) {
            const std::int32_t id = graph.ids_of(r)[j];
            const float distance = graph.distances_of(r)[j];
            if (j >= full) {
                ASSERT_EQ(id, -1) << "row " << r;
                ASSERT_EQ(distance, worst_value(graph.metric)) << "row " << r;
                continue;
            }
            ASSERT_GE(id, 0) << "row " << r;
            ASSERT_LT(id, vectors.n) << "row " << r;
            ASSERT_NE(id, self) << "row " << r;
            ASSERT_TRUE(seen.insert(id).second) << "row " << r << " holds " << id << " twice";
            const Reference reference = reference_distance(graph.metric, rows.data() + self * vectors.d,
                                                           rows.data() + id * vectors.d, vectors.d);
            ASSERT_NEAR(distance, reference.value, tolerance(reference)) << "row " << r << ", id " << id;
            if (j == 0) continue;
            const double before = order_of(graph.metric, graph.distances_of(r)[j - 1]);
            const double here = order_of(graph.metric, distance);
            ASSERT_TRUE(before < here || (before == here && graph.ids_of(r)[j - 1] < id))
                << "row " << r << ", entry " << j;
        }
    }
}

/// To the bit.
inline bool same_graph(const KnnGraphView& a, const KnnGraphView& b) {
    return a.n == b.n && a.k == b.k && std::equal(a.ids, a.ids + a.n * a.k, b.ids) &&
           std::equal(a.distances, a.distances + a.n * a.k, b.distances);
}

}  // namespace gnnd::test
