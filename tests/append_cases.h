// SPDX-License-Identifier: MIT
#pragma once
/// \file append_cases.h
/// Cases on which append() by searching is tried, by both backends.

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "gnnd/merge.h"
#include "gnnd/resources.h"
#include "tests/hard_sets.h"
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

/// Each append loses a little: what is measured after every one keeps the sum of it in bounds.
/// \param count  vectors that each of the appends adds to the first ones, until all are there
inline void expect_chain_of_appends_holds(const VectorView& vectors, std::int64_t first, std::int64_t count,
                                          const BuildParams& params) {
    VectorView here = rows_of(vectors, 0, first);
    KnnGraph graph = build(here, params).graph;
    for (; here.n < vectors.n; here.n += count) {
        BuildResult result = append(here, graph, rows_of(vectors, here.n, count), params);
        graph = std::move(result.graph);
        EXPECT_NE(result.stats.stop, StopReason::recall_missed) << "at " << here.n;
        EXPECT_GT(result.stats.recall.objects, 0) << "at " << here.n;
        EXPECT_EQ(result.stats.recall_added.objects, count) << "at " << here.n;
        EXPECT_GT(result.stats.recall_seconds, 0) << "at " << here.n;
        EXPECT_LT(result.stats.recall_seconds, result.stats.seconds) << "at " << here.n;
    }
    EXPECT_GE(Truth(vectors, params.metric).recall_of(graph), 0.985);
}

/// Of old rows that belong to what is added few miss it, though nothing measures or mends them in between.
/// \param vectors  of which the last 480 are added, 40 at a time
/// \param params   of a k of 32
inline void expect_unmeasured_appends_lose_little(const VectorView& vectors, BuildParams params) {
    constexpr std::int64_t kAdds = 12, kStep = 40;
    VectorView here = rows_of(vectors, 0, vectors.n - kAdds * kStep);
    params.recall = 1;
    KnnGraph graph = build(here, params).graph;
    params.recall = 0;
    for (; here.n < vectors.n; here.n += kStep)
        graph = append(here, graph, rows_of(vectors, here.n, kStep), params).graph;
    EXPECT_GE(Truth(vectors, params.metric, 0, vectors.n - kAdds * kStep).recall_of(graph), 0.999);
}

/// The added ones are few, and all of them lack what the graph before had not.
/// \param params  of a k of 32
inline void expect_appends_to_a_bad_graph_hold(const BuildParams& params) {
    constexpr std::int64_t kOld = 8800, kAdded = 200;
    const Vectors vectors = vectors_of(hard_sets()[0], kOld + kAdded, DType::f32);
    const VectorView old = rows_of(vectors, 0, kOld), added = rows_of(vectors, kOld, kAdded);
    BuildParams bad = params;
    bad.recall = 0;
    bad.iterations = 1;
    const KnnGraph before = build(old, bad).graph;
    const auto append_with = [&](float recall, Resources* resources = nullptr, std::int64_t device_memory = 0) {
        BuildParams asked = params;
        asked.recall = recall;
        asked.device_memory = device_memory;
        return append(old, before, added, asked, {}, resources, AppendMethod::search);
    };
    EXPECT_EQ(append_with(0).stats.recall.objects, 0);
    HeapResources heap;
    CountedResources counted(heap);
    const BuildResult easy = append_with(0.3f, &counted);
    EXPECT_EQ(easy.stats.stop, StopReason::searched);
    const double truth = Truth(vectors, Metric::L2).recall_of(easy.graph);
    EXPECT_LT(truth, 0.985) << "nothing is to be raised";
    EXPECT_GE(truth, easy.stats.recall.low - 0.004);
    EXPECT_LE(truth, easy.stats.recall.high + 0.004);
    EXPECT_EQ(easy.stats.recall_added.objects, kAdded);
    EXPECT_NEAR(easy.stats.recall_added.value, Truth(vectors, Metric::L2, kOld, kAdded).recall_of(easy.graph), 1e-6);
    const BuildResult good = append_with(0.99f);
    EXPECT_TRUE(good.stats.stop == StopReason::recall || good.stats.stop == StopReason::exact)
        << name_of(good.stats.stop);
    EXPECT_GT(good.stats.iterations.size(), easy.stats.iterations.size());
    for (std::size_t i = 0; i < good.stats.iterations.size(); ++i)
        EXPECT_EQ(good.stats.iterations[i].iteration, int(i));
    EXPECT_GE(Truth(vectors, Metric::L2).recall_of(good.graph), 0.985);
    expect_valid_graph(good.graph, vectors);
    if (params.device.kind == Device::Kind::cpu) return;

    const auto enough = std::int64_t(counted.peak() / 50 * 51);  // to search and to measure, and for nothing else
    CountedResources limited(heap);
    const BuildResult missed = append_with(0.99f, &limited, enough);
    EXPECT_EQ(missed.stats.stop, StopReason::recall_missed);
    EXPECT_LE(std::int64_t(limited.peak()), enough);
    EXPECT_EQ(limited.held(), 0u);
    EXPECT_TRUE(same_graph(missed.graph, easy.graph));
    EXPECT_EQ(missed.stats.recall.value, easy.stats.recall.value);
}

/// The added ones are few beside objects that lack nothing: both together have the recall before the added ones do.
/// \param params  of a k of 32
inline void expect_added_are_held_to_the_recall(BuildParams params) {
    constexpr std::int64_t kOld = 8900, kAdded = 300, kMostDimensions = 2048;
    HardSet set = hard_sets()[0];
    Vectors vectors(0, set.d, DType::f32);
    KnnGraph before;
    BuildStats searched;
    const auto rows = [&](std::int64_t begin, std::int64_t count) { return rows_of(vectors, begin, count); };
    do {  // until searches do not find nearly all
        ASSERT_LT(set.d, kMostDimensions);
        set.d *= 2;
        vectors = vectors_of(set, kOld + kAdded, DType::f32);
        params.recall = 1;
        before = build(rows(0, kOld), params).graph;
        params.recall = 0.5f;
        searched = append(rows(0, kOld), before, rows(kOld, kAdded), params, {}, nullptr, AppendMethod::search).stats;
        EXPECT_EQ(searched.stop, StopReason::searched);
    } while (searched.recall_added.high >= searched.recall.low);
    params.recall = float(searched.recall_added.high + searched.recall.low) / 2;
    const BuildResult result =
        append(rows(0, kOld), before, rows(kOld, kAdded), params, {}, nullptr, AppendMethod::search);
    EXPECT_TRUE(result.stats.stop == StopReason::recall || result.stats.stop == StopReason::exact)
        << name_of(result.stats.stop);
    EXPECT_GE(result.stats.recall_added.value, params.recall);
    EXPECT_GE(Truth(vectors, Metric::L2, kOld, kAdded).recall_of(result.graph), params.recall - 1e-6)
        << "all are measured";
    expect_valid_graph(result.graph, vectors);
}

/// Some were added without a measurement, and badly: when a few more are, those are held to the recall with them, and
/// among the old ones are not.
/// \param params  of a k of 32
inline void expect_unmeasured_are_held_to_the_recall(BuildParams params) {
    constexpr std::int64_t kOld = 8900, kUnmeasured = 60, kAdded = 20;
    Vectors vectors = vectors_of(hard_sets()[1], kOld + kUnmeasured + kAdded, DType::f32);
    std::vector<float> row(VectorView(vectors).d);
    for (std::int64_t i = 0; i < kAdded; ++i) {  // copies, which lack nothing themselves
        copy_as_f32(vectors, i, 1, row.data());
        for (std::int64_t c = 0; c < std::int64_t(row.size()); ++c) vectors.set(kOld + kUnmeasured + i, c, row[c]);
    }
    const VectorView before = rows_of(vectors, 0, kOld + kUnmeasured), added = rows_of(vectors, before.n, kAdded);
    BuildParams exact = params;
    exact.recall = 1;
    exact.k = 2 * params.k;
    const KnnGraph longer = build(before, exact).graph;
    KnnGraph graph(before.n, params.k, params.metric);
    for (std::int64_t i = 0; i < before.n; ++i) {  // the nearest 32, and of those unmeasured not one of them
        const std::int64_t skipped = i < kOld ? 0 : params.k;
        std::copy_n(longer.ids_of(i) + skipped, params.k, graph.ids() + i * params.k);
        std::copy_n(longer.distances_of(i) + skipped, params.k, graph.distances() + i * params.k);
    }
    params.recall = 0.95f;  // of 8,960 objects 60 lack everything
    const Truth truth(vectors, Metric::L2, kOld, kUnmeasured);
    const auto append_with = [&](std::int64_t unmeasured) {
        return append(before, graph, added, params, {}, nullptr, AppendMethod::search, unmeasured);
    };
    EXPECT_LT(truth.recall_of(append_with(0).graph), 0.5);
    const BuildResult result = append_with(kUnmeasured);
    EXPECT_TRUE(result.stats.stop == StopReason::recall || result.stats.stop == StopReason::exact)
        << name_of(result.stats.stop);
    EXPECT_GT(result.stats.recall_added.objects, kAdded);
    // The copies are measured beside them and lack nothing: what both may lack these may.
    EXPECT_GT(truth.recall_of(result.graph), 0.95 - 0.05 * kAdded / kUnmeasured - 1e-4);
    expect_valid_graph(result.graph, vectors);
}

}  // namespace gnnd::test
