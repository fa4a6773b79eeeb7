// SPDX-License-Identifier: MIT
// Builds that are asked for a recall: they have it, and what they say of it is true.
#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"
#include "gnnd/resources.h"
#include "tests/all_columns.h"
#include "tests/append_cases.h"
#include "tests/cpu.h"
#include "tests/hard_sets.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::HardSet;
using test::Truth;
using test::Vectors;

BuildParams asked_for(double recall, int k, Metric metric = Metric::L2) {
    BuildParams params = test::cpu_params(k, metric);
    params.recall = float(recall);
    return params;
}

/// The estimate holds what all objects' neighbours say, with some noise of the sample beside the interval.
void expect_true(const RecallEstimate& estimate, double truth) {
    EXPECT_GT(estimate.objects, 0);
    EXPECT_GE(truth, estimate.low - 0.004);
    EXPECT_LE(truth, estimate.high + 0.004);
}

struct Asked {
    HardSet set;
    int k;
    friend std::ostream& operator<<(std::ostream& out, const Asked& c) { return out << c.set.name << "_k" << c.k; }
};

std::vector<Asked> all_asked(const std::vector<int>& ks) {
    std::vector<Asked> all;
    for (const HardSet& set : test::hard_sets())
        for (const int k : ks) all.push_back({set, k});
    return all;
}

class HardSets : public testing::TestWithParam<Asked> {};
class HardSetsInLists : public HardSets {};

TEST_P(HardSets, HaveTheDefaultsRecall) {
    const auto& [set, k] = GetParam();
    const Vectors vectors = test::vectors_of(set, test::sized(9000), DType::f32);
    const BuildResult result = build(vectors, asked_for(BuildParams{}.recall, k, set.metric));
    const double truth = Truth(vectors, set.metric).recall_of(result.graph);
    EXPECT_GE(truth, 0.985);
    EXPECT_GE(result.stats.recall.value, 0.99);
    EXPECT_TRUE(result.stats.stop == StopReason::recall || result.stats.stop == StopReason::exact);
    expect_true(result.stats.recall, truth);
}

/// A limit on the trees that is none keeps it from comparing all pairs, so that the lists have to grow.
TEST_P(HardSetsInLists, AreReachedAsTheyGrow) {
    const auto& [set, k] = GetParam();
    const Vectors vectors = test::vectors_of(set, test::sized(5000), DType::f32);
    BuildParams params = asked_for(0.99, k, set.metric);
    params.trees = 6;
    const BuildResult result = build(vectors, params);
    EXPECT_EQ(result.stats.stop, StopReason::recall);
    const double truth = Truth(vectors, set.metric).recall_of(result.graph);
    EXPECT_GE(truth, 0.985);
    expect_true(result.stats.recall, truth);
}

INSTANTIATE_TEST_SUITE_P(All, HardSets, testing::ValuesIn(all_asked({10, 32})), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(All, HardSetsInLists, testing::ValuesIn(all_asked({40})), testing::PrintToStringParamName());

TEST(RecallAsked, TellsOfAllColumnsAndGoesOnForThem) {
    BuildParams params = asked_for(0.99, 64);
    params.trees = 6;
    test::expect_all_columns(params);
}

TEST(RecallAsked, HoldsForEveryMetricAndDType) {
    const HardSet set = test::hard_sets()[0];
    for (const Metric metric : test::kMetrics)
        for (const DType dtype : test::kDTypes) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            const Vectors vectors = test::vectors_of(set, 2500, dtype, metric == Metric::ChiSquare);
            BuildParams params = asked_for(0.99, 10, metric);
            params.trees = 6;
            const BuildResult result = build(vectors, params);
            EXPECT_EQ(result.stats.stop, StopReason::recall);
            const double truth = Truth(vectors, metric).recall_of(result.graph);
            EXPECT_GE(truth, 0.985);
            expect_true(result.stats.recall, truth);
        }
}

TEST(RecallAsked, IsWhatTheIntervalSays) {
    constexpr int kBuilds = 200;
    int held = 0;
    for (int seed = 0; seed < kBuilds; ++seed) {
        const Vectors vectors = test::random_vectors(1100, 6, DType::f32, false, unsigned(seed));
        BuildParams params = asked_for(0.9, 10);
        params.seed = std::uint64_t(seed);
        params.iterations = seed % 3;
        params.trees = 1 + seed % 2;
        const BuildResult result = build(vectors, params);
        std::vector<std::int32_t> all(1100);
        std::iota(all.begin(), all.end(), 0);
        const double truth = Truth(vectors, Metric::L2, all).recall_of(result.graph);
        held += result.stats.recall.low <= truth && truth <= result.stats.recall.high;
    }
    EXPECT_GE(held, 0.9 * kBuilds);
}

/// A limit on the trees that is none keeps it from comparing all pairs.
TEST(RecallAsked, EndsEarlyWhereItIsReached) {
    const Vectors vectors = test::random_vectors(9000, 16, DType::f32);
    const auto iterations = [&](double recall) {
        BuildParams params = asked_for(recall, 10);
        params.trees = 6;
        const BuildResult result = build(vectors, params);
        EXPECT_EQ(result.stats.stop, recall == 0 ? StopReason::converged : StopReason::recall);
        return result.stats.iterations.size();
    };
    EXPECT_LT(iterations(0.9), iterations(0));
}

/// They would settle without what was asked for, or take longer than all pairs: the first iterations tell.
TEST(RecallAsked, HardSetsDoNotSettleBeforeAllPairs) {
    for (const int set : {0, 1}) {  // Gaussian components, 32 and 64
        const Vectors vectors = test::vectors_of(test::hard_sets()[std::size_t(set)], 20000, DType::f32);
        const BuildResult result = build(vectors, asked_for(0.99, 10));
        EXPECT_EQ(result.stats.stop, StopReason::exact);
        EXPECT_LE(result.stats.iterations.size(), 3u) << "trees, one iteration, all pairs";
    }
}

TEST(RecallAsked, LimitsStayLimits) {
    const Vectors vectors = test::vectors_of(test::hard_sets()[2], 3000, DType::f32);
    const auto missed = [&](auto change) {
        BuildParams params = asked_for(0.99, 10);
        change(params);
        const BuildResult result = build(vectors, params);
        EXPECT_EQ(result.stats.stop, StopReason::recall_missed);
        EXPECT_LT(result.stats.recall.value, 0.99);
        expect_true(result.stats.recall, Truth(vectors, Metric::L2).recall_of(result.graph));
        return result.stats;
    };
    EXPECT_EQ(missed([](BuildParams& params) { params.iterations = 2; }).iterations.size(), 3u);
    EXPECT_EQ(missed([](BuildParams& params) { params.iterations = 0; }).iterations.size(), 1u);
    const BuildStats stats = missed([](BuildParams& params) {
        params.list_size = 12;
        params.samples = 5;
    });
    EXPECT_EQ(stats.choices.list_size, 12);
    EXPECT_EQ(stats.choices.samples, 5);
}

/// Few samples find little in each iteration, and much in all of them: a recall out of reach does not end them early.
TEST(RecallAsked, LimitsLeaveAsMuchAsWithoutARecall) {
    const Vectors vectors = test::random_vectors(5000, 16, DType::f32);
    const Truth truth(vectors, Metric::L2);
    const auto expect_as_much = [&](auto change) {
        BuildParams params = asked_for(0, 10);
        change(params);
        const BuildResult free = build(vectors, params);
        EXPECT_EQ(free.stats.stop, StopReason::converged);
        params.recall = 0.99f;
        const BuildResult asked = build(vectors, params);
        EXPECT_EQ(asked.stats.stop, StopReason::recall_missed);
        EXPECT_GE(truth.recall_of(asked.graph), truth.recall_of(free.graph) - 0.005);
        EXPECT_LE(asked.stats.iterations.size(), std::size_t(params.iterations) + 1);
    };
    expect_as_much([](BuildParams& params) {
        params.samples = 4;
        params.list_size = 16;
        params.init = Init::random;
    });
    expect_as_much([](BuildParams& params) {
        params.samples = 2;
        params.list_size = 32;
    });
    expect_as_much([](BuildParams& params) { params.samples = 1; });
}

TEST(RecallAsked, ComparesAllPairsWhereThatCostsLess) {
    const Vectors vectors = test::vectors_of(test::hard_sets()[2], 17000, DType::f32);
    const BuildResult result = build(vectors, asked_for(0.99, 10));
    EXPECT_EQ(result.stats.stop, StopReason::exact);
    EXPECT_FALSE(result.stats.choices.exhaustive) << "it was found out on the way";
    EXPECT_GT(result.stats.recall_seconds, 0);
    EXPECT_EQ(result.stats.recall.value, 1);
    expect_valid_graph(result.graph, vectors);
    EXPECT_TRUE(test::same_graph(result.graph, build_exact(vectors, test::cpu_params(10)).graph));
}

TEST(RecallAsked, GivesTheSameGraphOnAnyNumberOfThreads) {
    const Vectors vectors = test::vectors_of(test::hard_sets()[0], 3000, DType::f32);
    BuildParams params = asked_for(0.99, 10);
    params.trees = 2;
    params.threads = 1;
    const KnnGraph first = build(vectors, params).graph;
    params.threads = 3;
    EXPECT_TRUE(test::same_graph(first, build(vectors, params).graph));
}

TEST(RecallAsked, HoldsForRefineAndMerge) {
    const Vectors vectors = test::vectors_of(test::hard_sets()[0], 5000, DType::f32);
    BuildParams bad = test::cpu_params(20), params = asked_for(0.99, 20);
    bad.iterations = 1;
    bad.trees = 1;
    params.iterations = 41;  // a limit that is none
    const auto expect_good = [&](const BuildResult& result) {
        EXPECT_EQ(result.stats.stop, StopReason::recall);
        const double truth = Truth(vectors, Metric::L2).recall_of(result.graph);
        EXPECT_GE(truth, 0.985);
        expect_true(result.stats.recall, truth);
        expect_valid_graph(result.graph, vectors);
    };
    const KnnGraph before = build(vectors, bad).graph;
    EXPECT_LT(Truth(vectors, Metric::L2).recall_of(before), 0.9);
    const BuildResult refined = refine(vectors, before, params);
    expect_good(refined);
    const BuildResult again = refine(vectors, refined.graph, params);
    expect_good(again);
    EXPECT_EQ(again.stats.iterations.size(), 1u) << "it was there already";

    VectorView halves[2] = {vectors.view(), vectors.view()};
    halves[0].n = 2000;
    halves[1].n = 3000;
    halves[1].data = vectors.view().row(2000);
    const KnnGraph graphs[2] = {build(halves[0], bad).graph, build(halves[1], bad).graph};
    for (const Init init : kInits) {
        params.init = init;
        expect_good(merge(halves[0], graphs[0], halves[1], graphs[1], params));
    }
}

/// The recall counts ten neighbours, and a graph that has just these is not what a wider one is wanted for.
TEST(RecallAsked, ColumnsThatAGraphLacksAreFound) {
    const Vectors vectors = test::random_vectors(20000, 16, DType::f32);
    const KnnGraph narrow = build_exact(vectors, test::cpu_params(10)).graph;
    const BuildResult wide = refine(vectors, narrow, asked_for(0.99, 40));
    EXPECT_EQ(wide.stats.stop, StopReason::recall);
    EXPECT_GE(Truth(vectors, Metric::L2, 40).recall_of(wide.graph), 0.98);
    EXPECT_EQ(refine(vectors, wide.graph, asked_for(0.99, 40)).stats.iterations.size(), 1u);
}

/// A limit on the trees that is none keeps it from comparing all pairs, so that the lists have to grow.
TEST(RecallAsked, IsMissedWhereMemoryForbidsMore) {
    const Vectors vectors = test::vectors_of(test::hard_sets()[1], 9000, DType::f32);
    HeapResources heap;
    CountedResources free(heap);
    BuildParams params = asked_for(0, 10);
    params.trees = 6;
    build(vectors, params, {}, &free);
    params.recall = 0.99f;
    CountedResources more(heap), limited(heap, free.peak() * 5 / 4);
    EXPECT_EQ(build(vectors, params, {}, &more).stats.stop, StopReason::recall);
    EXPECT_GT(more.peak(), free.peak() * 5 / 4);
    const BuildResult result = build(vectors, params, {}, &limited);
    EXPECT_EQ(result.stats.stop, StopReason::recall_missed);
    EXPECT_LT(result.stats.recall.value, 0.99);
    expect_true(result.stats.recall, Truth(vectors, Metric::L2).recall_of(result.graph));
    expect_valid_graph(result.graph, vectors);
    EXPECT_EQ(limited.held(), 0u);
    CountedResources least(heap, free.peak() / 2);
    EXPECT_THROW(build(vectors, params, {}, &least), OutOfWorkMemory);
}

TEST(RecallAsked, HoldsForAChainOfAppends) {
    test::expect_chain_of_appends_holds(test::random_vectors(10000, 16, DType::f32), 6000, 100, asked_for(0.99, 10));
}

TEST(RecallAsked, HoldsForAppendsToABadGraph) {
    test::expect_appends_to_a_bad_graph_hold(asked_for(0.99, 32));
}

}  // namespace
}  // namespace gnnd
