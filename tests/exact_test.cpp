// SPDX-License-Identifier: MIT
// exact_neighbors() and pair_distances() against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gnnd/builder.h"
#include "gnnd/cpu/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"
#include "tests/cpu.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::expect_valid_graph;
using test::kDTypes;
using test::kMetrics;
using test::order_of;
using test::random_vectors;
using test::same_graph;
using test::Vectors;

TEST(ExactNeighbors, AgreeWithReference) {
    for (const Metric metric : kMetrics)
        for (const DType dtype : kDTypes) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            const Vectors vectors = test::vectors_for(metric, 300, 7, dtype);
            const std::vector<std::int32_t> objects{299, 0, 5, 5, 17};
            const KnnGraph graph = exact_neighbors(vectors, objects.data(), 5, 20, metric);
            expect_valid_graph(graph, vectors, &objects);
            for (std::size_t r = 0; r < objects.size(); ++r) {
                std::vector<double> order;
                for (int j = 0; j < 300; ++j)
                    if (j != objects[r])
                        order.push_back(order_of(metric, reference_distance(vectors, metric, objects[r], j).value));
                std::sort(order.begin(), order.end());
                for (int j = 0; j < 20; ++j)
                    EXPECT_NEAR(order_of(metric, graph.distances_of(r)[j]), order[j], 1e-5 * (1 + std::abs(order[j])));
            }
        }
}

TEST(ExactNeighbors, RefuseBadArguments) {
    const Vectors vectors = random_vectors(10, 3, DType::f32);
    const std::int32_t queries[] = {0, 10};
    EXPECT_THROW(exact_neighbors(vectors, queries, 2, 3, Metric::L2), InvalidArgument);
    EXPECT_THROW(exact_neighbors(vectors, queries, 1, 0, Metric::L2), InvalidArgument);
}

/// Lists would be a third of the set: sampling takes longer than comparing all.
TEST(BuildExact, IsWhatLongListsOfFewObjectsComeTo) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    BuildParams params = test::cpu_params(1024);
    const KnnGraph expected = build_exact(vectors, params).graph;
    for (const float recall : {0.0f, 0.99f}) {
        params.recall = recall;
        EXPECT_TRUE(plan_memory(vectors, params).choices.exhaustive) << recall;
        const BuildResult result = build(vectors, params);
        EXPECT_EQ(result.stats.stop, StopReason::exact) << recall;
        EXPECT_TRUE(same_graph(result.graph, expected)) << recall;
    }
}

TEST(BuildExact, FindsAllUnderEveryMetric) {
    for (const Metric metric : kMetrics)
        for (const DType dtype : kDTypes) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            const Vectors vectors = test::vectors_for(metric, 1500, 9, dtype);
            const BuildResult result = build_exact(vectors, test::cpu_params(20, metric));
            expect_valid_graph(result.graph, vectors);
            EXPECT_EQ(result.stats.stop, StopReason::exact);
            EXPECT_TRUE(result.stats.choices.exhaustive);
            std::vector<std::int32_t> all(1500);
            std::iota(all.begin(), all.end(), 0);
            EXPECT_TRUE(same_graph(result.graph, exact_neighbors(vectors, all.data(), 1500, 20, metric)));
            KnnGraph into(1500, 20, metric);
            build_exact_into(vectors, test::cpu_params(20, metric), into.ids(), into.distances());
            EXPECT_TRUE(same_graph(result.graph, into));
        }
}

/// Tiles of one set are left out; where one has objects of both, what is inside comes along.
TEST(BuildExact, AcrossTwoSetsFindsTheNearestOfTheOther) {
    constexpr std::int64_t kN = 1300;
    constexpr int kK = 20;
    for (const std::int64_t border : {384, 500, 1290})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
            SCOPED_TRACE(testing::Message() << border << ' ' << name_of(metric));
            const Vectors vectors = test::vectors_for(metric, kN, 24, DType::f32);
            VectorView first = vectors, second = vectors;
            first.n = border;
            second.data = first.row(border);
            second.n = kN - border;
            detail::Input input{{first, second}, {}};
            input.exact = input.across = true;
            const BuildResult result = detail::run(input, test::cpu_params(kK, metric), {}, nullptr);
            EXPECT_EQ(result.stats.stop, StopReason::exact);
            std::vector<std::int32_t> selves(kN, -1);
            const KnnGraph nearest[] = {
                cpu::nearest_of(second, vectors, selves.data(), kK, metric, 1, {}, detail::or_heap(nullptr)),
                cpu::nearest_of(first, vectors, selves.data(), kK, metric, 1, {}, detail::or_heap(nullptr))};
            for (std::int64_t i = 0; i < kN; ++i) {
                const bool behind = i >= border;
                const std::int64_t shift = behind ? 0 : border, others = behind ? border : kN - border;
                int own = 0;
                std::vector<std::int32_t> found, wanted;
                for (int j = 0; j < kK; ++j) {
                    const std::int32_t id = result.graph.ids_of(i)[j];
                    if ((id >= border) == behind)
                        ++own;
                    else
                        found.push_back(id);
                }
                for (std::size_t j = 0; j < found.size(); ++j)
                    wanted.push_back(std::int32_t(nearest[behind].ids_of(i)[j] + shift));
                EXPECT_EQ(found, wanted) << "object " << i;
                if (border % 128 == 0) {
                    EXPECT_EQ(own, 0) << "object " << i;
                }
                if (std::int64_t(found.size()) < std::min<std::int64_t>(others, kK)) {
                    const float next = nearest[behind].distances_of(i)[found.size()];
                    const float last = result.graph.distances_of(i)[kK - 1];
                    EXPECT_TRUE(is_similarity(metric) ? next <= last : next >= last) << "object " << i;
                }
            }
        }
}

TEST(PairDistances, AgreeWithReference) {
    const Vectors vectors = test::vectors_for(Metric::ChiSquare, 50, 33, DType::i8);
    std::vector<std::int32_t> a, b;
    for (int i = 0; i < 3000; ++i) {
        a.push_back(i / 300);
        b.push_back(i % 51 - 1);
    }
    std::vector<float> out(a.size());
    for (const Metric metric : kMetrics) {
        pair_distances(vectors, metric, a.data(), b.data(), std::int64_t(a.size()), out.data());
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (b[i] == -1) {
                EXPECT_EQ(out[i], worst_value(metric));
                continue;
            }
            const test::Reference reference = reference_distance(vectors, metric, a[i], b[i]);
            EXPECT_NEAR(out[i], reference.value, tolerance(reference));
        }
    }
    for (const Metric metric : kMetrics) {
        pair_distances(vectors, metric, a.data(), a.data(), std::int64_t(a.size()), out.data());
        const float best = best_value(metric);
        for (std::size_t i = 0; i < a.size() && std::isfinite(best); ++i) EXPECT_NEAR(out[i], best, 1e-6);
        EXPECT_NE(best, worst_value(metric));
    }
    b[3] = 50;
    EXPECT_THROW(pair_distances(vectors, Metric::L2, a.data(), b.data(), 4, out.data()), InvalidArgument);
}

}  // namespace
}  // namespace gnnd
