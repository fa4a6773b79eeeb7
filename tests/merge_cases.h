// SPDX-License-Identifier: MIT
#pragma once
/// \file merge_cases.h
/// Cases on which both backends' merges are tried.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>
#include <set>
#include <vector>

#include "gnnd/merge.h"
#include "tests/invariants.h"
#include "tests/reference.h"

namespace gnnd::test {

inline VectorView rows_of(const VectorView& vectors, std::int64_t begin, std::int64_t count) {
    VectorView part = vectors;
    part.data = vectors.row(begin);
    part.n = count;
    return part;
}

inline KnnGraph copy_of(const KnnGraphView& graph) {
    KnnGraph copy(graph.n, graph.k, graph.metric);
    std::copy_n(graph.ids, graph.n * graph.k, copy.ids());
    std::copy_n(graph.distances, graph.n * graph.k, copy.distances());
    return copy;
}

/// The graph of a set of any size: none has no rows, one object has no neighbours.
inline KnnGraph graph_of(const VectorView& vectors, BuildParams params, int k) {
    params.k = k;
    if (vectors.n < 2) return KnnGraph(vectors.n, k, params.metric);
    return build(vectors, params).graph;
}

/// A set of vectors cut in two, with the graph of each part.
struct Halves {
    Halves(const VectorView& vectors, std::int64_t n1, const BuildParams& params, int k1 = 0, int k2 = 0)
        : x1(rows_of(vectors, 0, n1)),
          x2(rows_of(vectors, n1, vectors.n - n1)),
          g1(graph_of(x1, params, k1 != 0 ? k1 : params.k)),
          g2(graph_of(x2, params, k2 != 0 ? k2 : params.k)) {}

    BuildResult merge(const BuildParams& params) const { return gnnd::merge(x1, g1, x2, g2, params); }

    VectorView x1, x2;
    KnnGraph g1, g2;
};

struct MergeCase {
    std::int64_t n1, n2, d;
    Metric metric = Metric::L2;
    DType dtype = DType::f32;
    int k = 10, k1 = 0, k2 = 0;  ///< 0: k
    Update update = Update::automatic;
    Init init = Init::projection;
    friend std::ostream& operator<<(std::ostream& out, const MergeCase& c) {
        return out << c.n1 << " + " << c.n2 << " x " << c.d << ' ' << name_of(c.dtype) << ' ' << name_of(c.metric)
                   << ", k " << c.k1 << " and " << c.k2 << " to " << c.k << ", " << name_of(c.update) << ", "
                   << name_of(c.init);
    }
};

inline std::vector<MergeCase> merge_cases() {
    std::vector<MergeCase> cases{
        // Empty and single, and sets of very different sizes, small enough to be compared exhaustively and not.
        {0, 2, 5},
        {0, 1500, 5},
        {1500, 0, 5},
        {1, 1, 5},
        {1, 40, 5},
        {40, 1, 5},
        {1, 3000, 5},
        {3000, 1, 5},
        {2000, 3, 5},
        {12, 1988, 5},
        {500, 500, 5},
        {1000, 2001, 7},
        // Graphs with more columns than asked for, and with fewer.
        {1000, 1500, 7, Metric::L2, DType::f32, 10, 30, 12},
        {1000, 1500, 7, Metric::L2, DType::f32, 40, 10, 50},
        {1500, 0, 7, Metric::L2, DType::f32, 20, 10, 10},
        {0, 1500, 7, Metric::L2, DType::f32, 5, 10, 10},
        {1000, 1500, 7, Metric::L2, DType::f32, 1},
        {1000, 1500, 7, Metric::L2, DType::f32, 33},
        {1000, 1500, 7, Metric::L2, DType::f32, 100},
        {1500, 30, 7, Metric::L2, DType::f32, 64},
    };
    for (const Metric metric : {Metric::InnerProduct, Metric::Cosine, Metric::L1, Metric::Linf, Metric::ChiSquare})
        cases.push_back({700, 1100, 9, metric, DType::f32});
    for (const DType dtype : {DType::f16, DType::u8, DType::i8}) cases.push_back({700, 1100, 200, Metric::L2, dtype});
    for (const Update update : {Update::all, Update::selective})
        for (const Init init : kInits) cases.push_back({900, 1200, 9, Metric::L2, DType::u8, 40, 40, 40, update, init});
    return cases;
}

/// The invariants hold, and no entry of a graph is missing whose place was not taken by a nearer one.
/// \param keeps_all  without it only the invariants
inline void expect_good_merge(const MergeCase& c, BuildParams params, bool keeps_all = true) {
    params.update = c.update;
    params.init = c.init;
    const Vectors vectors = vectors_for(c.metric, c.n1 + c.n2, c.d, c.dtype);
    const Halves halves(vectors, c.n1, params, c.k1, c.k2);
    const BuildResult result = halves.merge(params);
    ASSERT_NO_FATAL_FAILURE(expect_valid_graph(result.graph, vectors));
    const KnnGraphView merged = result.graph;
    for (std::int64_t i = 0; keeps_all && i < merged.n; ++i) {
        const std::int64_t offset = i < c.n1 ? 0 : c.n1;
        const KnnGraphView own = i < c.n1 ? halves.g1.view() : halves.g2.view();
        const double last = order_of(c.metric, merged.distances_of(i)[std::min(merged.k, merged.n - 1) - 1]);
        // A GPU's lists compare floats as float16.
        const double limit = last - (params.device.kind == Device::Kind::cpu ? 1e-6 : 1e-2) * std::abs(last);
        const std::set<std::int32_t> kept(merged.ids_of(i), merged.ids_of(i) + merged.k);
        for (std::int64_t j = 0; j < own.k; ++j) {
            const std::int32_t id = own.ids_of(i - offset)[j];
            if (id < 0 || order_of(c.metric, own.distances_of(i - offset)[j]) >= limit) continue;
            ASSERT_TRUE(kept.count(std::int32_t(id + offset)) == 1) << "row " << i << " lost " << id + offset;
        }
    }
}

/// The rows by their distance to the first one: cut anywhere, the parts lie apart and meet at a border.
inline Vectors sorted_by_distance(const VectorView& vectors) {
    std::vector<std::int32_t> order(vectors.n), zeros(vectors.n, 0);
    std::iota(order.begin(), order.end(), 0);
    std::vector<float> distances(vectors.n);
    pair_distances(vectors, Metric::L2, zeros.data(), order.data(), vectors.n, distances.data());
    std::sort(order.begin(), order.end(), [&](int a, int b) { return distances[a] < distances[b]; });
    Vectors sorted(vectors.n, vectors.d, vectors.dtype);
    std::vector<float> row(vectors.d);
    for (std::int64_t i = 0; i < vectors.n; ++i) {
        copy_as_f32(vectors, order[i], 1, row.data());
        for (std::int64_t c = 0; c < vectors.d; ++c) sorted.set(i, c, row[c]);
    }
    return sorted;
}

/// Cuts the vectors at n1, merges the parts' graphs and compares with one build of the same parameters.
/// \param least  Recall@10 may be so much lower
inline void expect_recall_of_one_build(const VectorView& vectors, std::int64_t n1, const BuildParams& params,
                                       double least) {
    const Truth truth(vectors, params.metric);
    const double one = truth.recall_of(build(vectors, params).graph);
    const BuildResult merged = Halves(vectors, n1, params).merge(params);
    EXPECT_GE(truth.recall_of(merged.graph), one - least) << "one build has " << one;
}

/// Whichever of two exact graphs has few objects, these have the recall that is asked for, too, which those of the
/// other alone nearly are enough for.
inline void expect_smaller_set_holds(const VectorView& vectors, const BuildParams& params) {
    BuildParams exact = params;
    exact.recall = 1;
    exact.trees = 0;
    const std::int64_t n = vectors.n;
    for (const std::int64_t few : {std::int64_t(10), n / 16})
        for (const std::int64_t n1 : {n - few, few}) {
            SCOPED_TRACE(testing::Message() << n1 << " of " << n);
            const Halves halves(vectors, n1, exact);
            const BuildResult merged = halves.merge(params);
            EXPECT_TRUE(merged.stats.stop == StopReason::recall || merged.stats.stop == StopReason::exact)
                << name_of(merged.stats.stop);
            const Truth truth(vectors, params.metric, n1 == few ? 0 : n1, few);
            // All of the 10 are measured, of more 256.
            EXPECT_GE(truth.recall_of(merged.graph), params.recall - (few == 10 ? 1e-6 : 0.03));
            expect_valid_graph(merged.graph, vectors);
        }
}

/// Cuts the vectors at n1 and merges the parts' graphs: it ends after the first iteration that finds little of what
/// there is to find, and more of them are of no use.
inline void expect_end_in_time(const VectorView& vectors, std::int64_t n1, BuildParams params) {
    const Halves halves(vectors, n1, params);
    const BuildResult merged = halves.merge(params);
    const double to_find = 2 * double(n1) * double(vectors.n - n1) * params.k / double(vectors.n);
    const std::vector<IterationStats>& iterations = merged.stats.iterations;
    EXPECT_EQ(merged.stats.stop, StopReason::converged);
    for (std::size_t i = 1; i < iterations.size(); ++i)
        EXPECT_EQ(double(iterations[i].changed) < 0.02 * to_find, i + 1 == iterations.size()) << "iteration " << i;
    params.delta = 0;
    params.iterations = iterations.back().iteration + 4;
    const BuildResult longer = halves.merge(params);
    EXPECT_EQ(longer.stats.stop, StopReason::iterations);
    const Truth truth(vectors, params.metric);
    EXPECT_GE(truth.recall_of(merged.graph), truth.recall_of(longer.graph) - 0.001);
}

}  // namespace gnnd::test
