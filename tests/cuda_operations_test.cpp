// SPDX-License-Identifier: MIT
// Operations on graphs on a GPU beside the CPU's. Without a GPU all of it is skipped.
#include "tests/cuda_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gnnd/error.h"

namespace gnnd {
namespace {

using test::expect_equal;
using test::expect_near;
using test::graph_with_distances;
using test::kGpu;
using test::kOfEdges;
using test::OfEdges;
using test::on_both;
using test::OnDevice;
using test::random_graph;

class CudaOperationsTest : public test::CudaOperations {};
INSTANTIATE_TEST_SUITE_P(All, CudaOperationsTest, testing::ValuesIn(test::kMetrics), test::metric_name);

void expect_groups(const Duplicates& a, const Duplicates& b) {
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.sizes, b.sizes);
    EXPECT_EQ(a.firsts, b.firsts);
    EXPECT_EQ(a.full, b.full);
}

constexpr Components (*kComponents)(const KnnGraphView&, const EdgeParams&, const Callbacks&,
                                    Resources*) = connected_components;
constexpr Duplicates (*kDuplicates)(const KnnGraphView&, const DuplicateParams&, const Callbacks&,
                                    Resources*) = duplicates;

void expect_cut(const KnnGraphView& graph, const EdgeParams& params) {
    for (const OfEdges operation : kOfEdges) on_both(operation, graph, params, expect_equal);
    on_both(full_rows, graph, params, [](std::int64_t a, std::int64_t b) { EXPECT_EQ(a, b); });
    on_both(kComponents, graph, params, [](const Components& a, const Components& b) {
        EXPECT_EQ(a.labels, b.labels);
        EXPECT_EQ(a.sizes, b.sizes);
    });
    if (params.radius)
        on_both(kDuplicates, graph, DuplicateParams{*params.radius, params.values, params.neighbors}, expect_groups);
}

void expect_weights(const KnnGraphView& graph, int neighbors) {
    const int columns = neighbors > 0 ? neighbors : int(graph.k);
    for (const bool self : {false, true})
        for (const float prune : {0.f, 0.2f})
            on_both(jaccard_graph, graph, JaccardParams{neighbors, self, prune}, expect_equal);
    for (FuzzyParams params : {FuzzyParams{neighbors, 1, 1, 1}, FuzzyParams{neighbors, 0, 0, 1},
                               FuzzyParams{neighbors, 1.5f, 0.5f, 0.7f}, FuzzyParams{neighbors, 3, 0.25f, 1.3f}}) {
        params.local_connectivity = std::min(params.local_connectivity, float(columns));
        on_both(fuzzy_simplicial_set, graph, params, expect_near);
    }
    for (const int min_samples : {1, (columns + 1) / 2, columns}) {
        const ReachabilityParams params{neighbors, min_samples, min_samples == 1 ? 1.f : 0.7f};
        on_both(core_distances, graph, params, [](const auto& a, const auto& b) { EXPECT_EQ(a, b); });
        on_both(mutual_reachability_graph, graph, params, expect_equal);
    }
}

/// All operations, with all entries and with some.
void expect_same(const KnnGraphView& graph) {
    SCOPED_TRACE(testing::Message() << "n " << graph.n << ", k " << graph.k);
    const float middle = graph.distances_of(graph.n / 2)[graph.k / 2];
    for (const int neighbors : {0, int(graph.k + 1) / 2}) {
        for (const GraphValues values : {GraphValues::metric, GraphValues::distance}) {
            float radius = middle;
            if (values == GraphValues::distance) true_distances(graph.metric, &middle, 1, &radius);
            expect_cut(graph, {neighbors, values, {}});
            expect_cut(graph, {neighbors, values, radius});
        }
        expect_weights(graph, neighbors);
    }
}

TEST_P(CudaOperationsTest, AreThoseOfTheCpu) {
    for (const std::int64_t n : {1, 2, 50, 1000})
        for (const int k : {1, 32, 65, 130})
            if (n * k <= 50000 && (n > 1 || k == 1))
                expect_same(n == 1 ? KnnGraph(1, k, GetParam()) : graph_with_distances(GetParam(), n, k));
}

TEST_P(CudaOperationsTest, AreThoseOfTheCpuOnWhatNobodyBuilt) {
    for (const std::int64_t n : {5, 40, 5000})
        for (const int k : {3, 20})
            for (const bool padded : {false, true}) expect_same(random_graph(GetParam(), n, k, unsigned(n), padded));
}

TEST_P(CudaOperationsTest, AreThoseOfTheCpuOnHardSets) {
    for (const test::HardSet& set : test::hard_sets()) {
        SCOPED_TRACE(set.name);
        test::Vectors vectors = test::vectors_of(set, 800, DType::f32, GetParam() == Metric::ChiSquare);
        if (GetParam() == Metric::Cosine)
            for (std::int64_t i = 0; i < 800; ++i) vectors.set(i, 0, 1);
        const KnnGraph graph = test::exact_graph(vectors, GetParam(), 20);
        expect_cut(graph, {});
        on_both(jaccard_graph, graph, JaccardParams{}, expect_equal);
        if (GetParam() != Metric::InnerProduct) expect_weights(graph, 0);  // of any length: there are no distances
    }
}

/// One that all name, whose row is as long as there are objects, and a ring through all of them.
TEST_P(CudaOperationsTest, AStarAndARing) {
    constexpr std::int64_t kObjects = 20000;
    KnnGraph star(kObjects, 1, GetParam()), ring(kObjects, 1, GetParam());
    for (std::int64_t i = 0; i < kObjects; ++i) {
        star.ids()[i] = i == 7 ? 9 : 7;
        ring.ids()[i] = std::int32_t((i + 1) % kObjects);
        star.distances()[i] = ring.distances()[i] = 0.5F;
    }
    for (const KnnGraph& graph : {star, ring}) {
        expect_cut(graph, {});
        expect_weights(graph, 0);
    }
}

TEST_P(CudaOperationsTest, EqualRowsAreOneGroup) {
    const KnnGraph graph = random_graph(GetParam(), 4000, 5, 8, true);
    Array<std::int32_t> equal(4000);
    for (std::int32_t i = 0; i < 4000; ++i) equal[std::size_t(i)] = i % 10 == 9 ? i - 6 : i;
    for (const float threshold : {-1.f, 0.f, 0.25f, 1.f}) {
        DuplicateParams params{threshold, GraphValues::metric, 0, 0, equal.data()};
        on_both(kDuplicates, graph, params, expect_groups);
        params.values = GraphValues::distance;
        on_both(kDuplicates, graph, params, expect_groups);
    }
    const OnDevice<std::int32_t> there(equal.size(), equal.data());
    EXPECT_THROW(duplicates(graph, {0, {}, 0, 0, there.get(), kGpu}), InvalidArgument);
    equal[17] = 4000;
    EXPECT_THROW(duplicates(graph, {0, {}, 0, 0, equal.data(), kGpu}), InvalidArgument);
    EXPECT_THROW(duplicates(graph, {NAN, {}, 0, 0, nullptr, kGpu}), InvalidArgument);
}

TEST_P(CudaOperationsTest, AreTheSameRunAfterRun) {
    const KnnGraph graph = random_graph(GetParam(), 30000, 16, 2, true);
    const CsrGraph first = fuzzy_simplicial_set(graph, {0, 1, 1, 1, 0, kGpu});
    const Components components = connected_components(graph, {0, {}, {}, 0, kGpu});
    for (int run = 0; run < 3; ++run) {
        EXPECT_TRUE(test::same(first, fuzzy_simplicial_set(graph, {0, 1, 1, 1, 0, kGpu})));
        EXPECT_EQ(connected_components(graph, {0, {}, {}, 0, kGpu}).labels, components.labels);
    }
}

}  // namespace
}  // namespace gnnd
