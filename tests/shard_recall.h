// SPDX-License-Identifier: MIT
#pragma once
/// \file shard_recall.h
/// Expectations of the recall of a graph in shards.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/recall.h"

namespace gnnd::test {

inline void expect_same_recall(const RecallEstimate& a, const RecallEstimate& b) {
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.low, b.low);
    EXPECT_EQ(a.high, b.high);
    EXPECT_EQ(a.at, b.at);
    EXPECT_EQ(a.objects, b.objects);
}

/// The estimate against brute force, on the CPU, over the objects that the seed chooses.
/// \param tolerance  entries that may count otherwise, where a GPU has summed up the list's distances
inline void expect_true_recall(const RecallEstimate& estimate, const KnnGraph& graph, const VectorView& vectors,
                               const BuildParams& params, std::int64_t objects, double tolerance = 0) {
    const std::vector<std::int32_t> sample = detail::sample_objects(vectors.n, objects, params.seed);
    const int at = detail::recall_at_of(params);
    const auto count = std::int64_t(sample.size());
    const KnnGraph truth = exact_neighbors(vectors, sample.data(), count, at, params.metric);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const float limit = truth.distances_of(i)[at - 1];
        const std::int32_t *ids = graph.ids_of(sample[std::size_t(i)]), *true_ids = truth.ids_of(i);
        for (int j = 0; j < at; ++j) {
            const float distance = graph.distances_of(sample[std::size_t(i)])[j];
            sum += (is_similarity(params.metric) ? distance >= limit : distance <= limit) ||
                   std::find(true_ids, true_ids + at, ids[j]) != true_ids + at;
        }
    }
    EXPECT_EQ(estimate.objects, count);
    EXPECT_EQ(estimate.at, at);
    EXPECT_NEAR(estimate.value, sum / double(count * at), tolerance / double(count * at) + 1e-12);
    EXPECT_LE(estimate.low, estimate.value);
    EXPECT_GE(estimate.high, estimate.value);
}

}  // namespace gnnd::test
