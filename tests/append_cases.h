// SPDX-License-Identifier: MIT
#pragma once
/// \file append_cases.h
/// What both backends' append() by searching is tried on.

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "gnnd/merge.h"
#include "tests/merge_cases.h"

namespace gnnd::test {

/// A set of vectors of which the last ones are added to the graph of the others, by searching.
inline BuildResult search_last(const VectorView& vectors, std::int64_t count, const BuildParams& params, int k_old = 0,
                               const Callbacks& callbacks = {}, Resources* resources = nullptr) {
    const VectorView old = rows_of(vectors, 0, vectors.n - count);
    const VectorView added = rows_of(vectors, vectors.n - count, count);
    return append(old, graph_of(old, params, k_old != 0 ? k_old : params.k), added, params, callbacks, resources,
                  AppendMethod::search);
}

/// The invariants hold, and no entry of the old graph is missing whose place was not taken by a nearer one.
inline void expect_good_search(const MergeCase& c, const BuildParams& params) {
    const Vectors vectors = vectors_for(c.metric, c.n1 + c.n2, c.d, c.dtype);
    const VectorView old = rows_of(vectors, 0, c.n1), added = rows_of(vectors, c.n1, c.n2);
    const KnnGraph before = graph_of(old, params, c.k1 != 0 ? c.k1 : c.k);
    const BuildResult result = append(old, before, added, params, {}, nullptr, AppendMethod::search);
    ASSERT_NO_FATAL_FAILURE(expect_valid_graph(result.graph, vectors));
    const KnnGraphView graph = result.graph;
    for (std::int64_t i = 0; i < c.n1; ++i) {
        const double last = order_of(c.metric, graph.distances_of(i)[std::min(graph.k, graph.n - 1) - 1]);
        const double limit = last - 1e-6 * std::abs(last);
        const std::set<std::int32_t> kept(graph.ids_of(i), graph.ids_of(i) + graph.k);
        for (std::int64_t j = 0; j < before.k(); ++j) {
            const std::int32_t id = before.ids_of(i)[j];
            if (id < 0 || order_of(c.metric, before.distances_of(i)[j]) >= limit) continue;
            ASSERT_TRUE(kept.count(id) == 1) << "row " << i << " lost " << id;
        }
    }
}

/// Recall@10 of the old and of the added objects against one build of all.
inline void expect_search_as_good_as_one_build(const VectorView& vectors, std::int64_t count, const BuildParams& params,
                                               double least = 0.01) {
    const KnnGraph one = build(vectors, params).graph;
    const BuildResult result = search_last(vectors, count, params);
    EXPECT_EQ(result.stats.stop, StopReason::searched);
    const std::int64_t old = vectors.n - count;
    for (const auto& [begin, size] : {std::pair(std::int64_t(0), old), std::pair(old, count)}) {
        const Truth truth(vectors, params.metric, begin, size);
        const double expected = truth.recall_of(one);
        EXPECT_GE(truth.recall_of(result.graph), expected - least)
            << "objects from " << begin << ": one build has " << expected;
    }
}

/// Vectors of which the last ones lie far from all others, and near each other.
inline Vectors with_far_cluster(std::int64_t n, std::int64_t count, std::int64_t d) {
    const Vectors near = random_vectors(n, d, DType::f32);
    Vectors vectors(n, d, DType::f32);
    std::vector<float> row(d);
    for (std::int64_t i = 0; i < n; ++i) {
        copy_as_f32(near, i, 1, row.data());
        for (std::int64_t c = 0; c < d; ++c) vectors.set(i, c, row[c] + (i < n - count ? 0.0f : 1000.0f));
    }
    return vectors;
}

}  // namespace gnnd::test
