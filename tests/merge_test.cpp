// SPDX-License-Identifier: MIT
// merge() and append() on the CPU: GGM's invariants, what it must not lose, how good it is, and what it refuses.
#include "gnnd/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/cpu.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/merge_cases.h"
#include "tests/paths.h"
#include "tests/reference.h"

namespace gnnd {
namespace {

using test::cpu_params;
using test::expect_valid_graph;
using test::Halves;
using test::message_of;
using test::random_vectors;
using test::Vectors;
using test::vectors_for;

TEST(Merge, KeepsTheInvariants) {
    for (const test::MergeCase& c : test::merge_cases()) {
        SCOPED_TRACE(c);
        test::expect_good_merge(c, cpu_params(c.k, c.metric));
    }
}

TEST(Merge, OfHalvesIsAsGoodAsOneBuild) {
    const io::VectorFile sample(test::kSampleFile);
    for (const Init init : kInits)
        for (const Update update : {Update::all, Update::selective}) {
            BuildParams params = cpu_params(32);
            params.init = init;
            params.update = update;
            SCOPED_TRACE(testing::Message() << name_of(init) << ", " << name_of(update));
            test::expect_recall_of_one_build(test::rows_of(sample.view(), 0, test::sized(8000)), test::sized(4000),
                                             params, 0.003);
        }
}

TEST(Merge, OfSetsThatLieApartIsAsGoodAsOneBuild) {
    const io::VectorFile sample(test::kSampleFile);
    const VectorView rows = test::rows_of(sample.view(), 0, test::sized(8000));
    test::expect_recall_of_one_build(test::sorted_by_distance(rows), test::sized(4000), cpu_params(32), 0.003);
}

/// Who asks between two steps of it counts these.
TEST(Merge, OfFewAndManyTakesNoStepsForPairsThatAreKnown) {
    constexpr std::int64_t kN = 40000;
    const Vectors vectors = random_vectors(kN, 3, DType::f32);
    BuildParams params = cpu_params(5);
    params.threads = 1;
    params.recall = 0.99F;
    for (const std::int64_t n1 : {std::int64_t(3), kN - 3}) {
        const Halves halves(vectors, n1, params);
        std::int64_t steps = 0;
        Callbacks callbacks;
        callbacks.interrupt = [&] { return ++steps, false; };
        const BuildResult merged = merge(halves.x1, halves.g1, halves.x2, halves.g2, params, callbacks);
        EXPECT_EQ(merged.stats.stop, StopReason::recall);
        EXPECT_LT(steps, kN / 4) << "of " << n1;
    }
}

TEST(Merge, EndsWhenLittleIsLeftToFind) {
    const io::VectorFile sample(test::kSampleFile);
    const VectorView rows = test::rows_of(sample.view(), 0, test::sized(8000));
    for (const Init init : kInits)
        for (const std::int64_t n2 : {rows.n / 2, rows.n / 20}) {
            SCOPED_TRACE(testing::Message() << name_of(init) << ", " << n2);
            BuildParams params = cpu_params(32);
            params.init = init;
            test::expect_end_in_time(rows, rows.n - n2, params);
        }
}

/// Graphs that are exact lack pairs across alone; of poor ones the others are compared, too.
TEST(Merge, ComparesAllPairsAcrossAndTheOthersWhereTheirGraphsLackThem) {
    const Vectors vectors = random_vectors(12000, 32, DType::f32);
    BuildParams exact = cpu_params(20), poor = exact, params = exact;
    exact.recall = 1;
    poor.recall = 0;
    poor.iterations = 1;
    params.recall = 0.999F;
    const VectorView first = test::rows_of(vectors, 0, 7000), second = test::rows_of(vectors, 7000, 5000);
    const KnnGraph truth = build(vectors, exact).graph;
    for (const BuildParams& before : {exact, poor}) {
        const BuildResult merged =
            merge(first, build(first, before).graph, second, build(second, before).graph, params);
        EXPECT_EQ(merged.stats.stop, before.recall == 1 ? StopReason::recall : StopReason::exact);
        EXPECT_TRUE(test::same_graph(merged.graph, truth));
    }
}

/// By comparing all pairs across, and by iterations where limits are set by hand, though they are none.
TEST(Merge, HoldsTheSmallerSetToTheRecall) {
    const Vectors vectors = random_vectors(12000, 24, DType::f32);
    BuildParams params = cpu_params(10);
    params.recall = 0.9F;
    for (const int trees : {0, 6}) {
        SCOPED_TRACE(testing::Message() << trees << " trees");
        params.trees = trees;
        test::expect_smaller_set_holds(vectors, params);
    }
}

/// Every object has a twin in the other set, at no distance.
TEST(Merge, FindsTheTwinsOfTheSameSetTwice) {
    const io::VectorFile sample(test::kSampleFile);
    const std::int64_t n = test::sized(5000);
    const VectorView half = test::rows_of(sample.view(), 0, n);
    const KnnGraph graph = build(half, cpu_params(20)).graph;
    const BuildResult result = merge(half, graph, half, graph, cpu_params(20));
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < 2 * n; ++i) {
        EXPECT_EQ(result.graph.distances_of(i)[0], 0);
        found += std::count(result.graph.ids_of(i), result.graph.ids_of(i) + 20, (i + n) % (2 * n));
    }
    EXPECT_GE(found, 2 * n - 10);
}

/// A set of vectors of which the last ones are added to the graph of the others.
BuildResult append_last(const VectorView& vectors, std::int64_t count, const BuildParams& params,
                        const Callbacks& callbacks = {}) {
    const VectorView old = test::rows_of(vectors, 0, vectors.n - count);
    const VectorView added = test::rows_of(vectors, vectors.n - count, count);
    return append(old, test::graph_of(old, params, params.k), added, params, callbacks);
}

TEST(Merge, AppendsAnyNumber) {
    const Vectors vectors = random_vectors(4000, 12, DType::f32);
    for (const std::int64_t count : {0, 1, 10, 1000, 2000, 3999, 4000}) {
        SCOPED_TRACE(count);
        expect_valid_graph(append_last(vectors, count, cpu_params(16)).graph, vectors);
    }
    // Old objects keep what they have.
    const KnnGraph before = build(vectors, cpu_params(16)).graph;
    const VectorView none{nullptr, 0, 12, DType::f32, 0};
    EXPECT_TRUE(test::same_graph(append(vectors, before, none, cpu_params(16)).graph, before));
}

TEST(Merge, AppendedObjectsAreFoundAsByOneBuild) {
    const io::VectorFile sample(test::kSampleFile);
    const BuildParams params = cpu_params(32);
    const VectorView rows = test::rows_of(sample.view(), 0, test::sized(sample.n()));
    const std::int64_t added = test::sized(1000), old = rows.n - added;
    const KnnGraph one = build(rows, params).graph;
    const KnnGraph appended = append_last(rows, added, params).graph;
    for (const auto& [begin, count] : {std::pair(std::int64_t(0), old), std::pair(old, added)}) {
        const test::Truth truth(rows, params.metric, begin, count);
        const double expected = truth.recall_of(one);
        EXPECT_GE(truth.recall_of(appended), expected - 0.01) << "one build has " << expected;
    }
}

TEST(Merge, AppendReportsBothPhases) {
    const Vectors vectors = random_vectors(5000, 12, DType::u8);
    std::vector<IterationStats> seen;
    Callbacks callbacks;
    callbacks.progress = [&](const IterationStats& iteration) { seen.push_back(iteration); };
    const BuildStats stats = append_last(vectors, 1500, cpu_params(16), callbacks).stats;
    ASSERT_GT(seen.size(), stats.iterations.size());
    const std::size_t builds = seen.size() - stats.iterations.size();
    double seconds = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].objects, i < builds ? 1500 : 5000);
        EXPECT_EQ(seen[i].iteration, int(i < builds ? i : i - builds));
        seconds += seen[i].seconds;
    }
    EXPECT_GE(stats.seconds, seconds);
    EXPECT_GE(stats.peak_work_bytes, 1500 * 16 * 8);
}

TEST(Merge, AppendRefusesWhatDoesNotFit) {
    const Vectors vectors = random_vectors(2000, 6, DType::f32);
    const KnnGraph graph = build(vectors, cpu_params(8)).graph;
    const auto refused = [&](const VectorView& x, const VectorView& added, const BuildParams& params) {
        return message_of<InvalidArgument>([&] { append(x, graph, added, params); });
    };
    EXPECT_EQ(refused(test::rows_of(vectors, 0, 1000), vectors, cpu_params(8)),
              "append: the old graph has 2000 objects, its vectors are 1000");
    EXPECT_EQ(refused(vectors, vectors, cpu_params(8, Metric::L1)),
              "append: the old graph was made under l2, asked for is l1");
    EXPECT_EQ(refused(vectors, random_vectors(5, 7, DType::f32), cpu_params(8)),
              "append: vectors of 6 f32 and of 7 f32");
    EXPECT_EQ(refused(vectors, test::rows_of(vectors, 0, -1), cpu_params(8)), "append: the added vectors: n = -1");
    Vectors bad = random_vectors(1500, 6, DType::f32);
    bad.set(1234, 3, NAN);
    EXPECT_EQ(refused(vectors, bad, cpu_params(8)), "append: of the added vectors: vector 1234 holds NaN");
    EXPECT_EQ(refused(vectors, vectors, cpu_params(0)), message_of<InvalidArgument>([] { cpu_params(0).validate(); }));
}

TEST(Merge, IsTheSameOnAnyNumberOfThreads) {
    const Vectors vectors = random_vectors(4000, 12, DType::u8);
    const Halves halves(vectors, 1500, cpu_params(16));
    BuildParams params = cpu_params(16);
    params.threads = 1;
    const KnnGraph expected = halves.merge(params).graph;
    for (const int threads : {2, 5}) {
        params.threads = threads;
        EXPECT_TRUE(test::same_graph(halves.merge(params).graph, expected)) << threads;
    }
}

TEST(Merge, RefusesWhatDoesNotFit) {
    const Vectors vectors = random_vectors(3000, 6, DType::f32);
    const Halves halves(vectors, 2000, cpu_params(8));
    const auto refused = [&](const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                             const BuildParams& params) {
        return message_of<InvalidArgument>([&] { merge(x1, g1, x2, g2, params); });
    };
    const VectorView &x1 = halves.x1, &x2 = halves.x2;  // clang 14 lets no lambda use structured bindings
    const KnnGraph &g1 = halves.g1, &g2 = halves.g2;
    EXPECT_EQ(refused(x1, g2, x2, g2, cpu_params(8)), "merge: the first graph has 1000 objects, its vectors are 2000");
    EXPECT_EQ(refused(x1, g1, x2, g2, cpu_params(8, Metric::L1)),
              "merge: the first graph was made under l2, asked for is l1");
    const Vectors other = random_vectors(1000, 7, DType::f32);
    EXPECT_EQ(refused(x1, g1, other, g2, cpu_params(8)), "merge: vectors of 6 f32 and of 7 f32");
    const Vectors typed = random_vectors(1000, 6, DType::u8);
    EXPECT_EQ(refused(x1, g1, typed, g2, cpu_params(8)), "merge: vectors of 6 f32 and of 6 u8");
    KnnGraphView null = g2;
    null.ids = nullptr;
    EXPECT_EQ(refused(x1, g1, x2, null, cpu_params(8)), "merge: the second graph's arrays are null pointers");
    VectorView nothing = x2;
    nothing.data = nullptr;
    EXPECT_EQ(refused(x1, g1, nothing, g2, cpu_params(8)), "vectors are a null pointer");
    KnnGraph wrong = test::copy_of(g2);
    wrong.ids()[17] = 1000;
    EXPECT_EQ(refused(x1, g1, x2, wrong, cpu_params(8)), "graph.ids[17] = 1000 is outside of [-1, 1000)");
    const VectorView none{nullptr, 0, 6, DType::f32, 0};
    EXPECT_EQ(
        refused(none, {0, 8, Metric::L2, nullptr, nullptr}, none, {0, 8, Metric::L2, nullptr, nullptr}, cpu_params(8)),
        "merge: both sets are empty");
    EXPECT_EQ(message_of<InvalidArgument>([&] { merge_into(x1, g1, x2, g2, cpu_params(8), nullptr, nullptr); }),
              "merge_into: the arrays are null pointers");
}

TEST(Merge, EndsWhenAsked) {
    const Vectors vectors = random_vectors(4000, 6, DType::f32);
    const Halves halves(vectors, 2000, cpu_params(8));
    Callbacks callbacks;
    int iterations = 0;
    callbacks.progress = [&](const IterationStats&) { ++iterations; };
    callbacks.interrupt = [&] { return iterations == 2; };
    const auto& [x1, x2, g1, g2] = halves;
    EXPECT_THROW(merge(x1, g1, x2, g2, cpu_params(8), callbacks), Interrupted);
    iterations = 0;  // while the graph of the added ones is built
    EXPECT_THROW(append(x1, g1, x2, cpu_params(8), callbacks), Interrupted);
}

}  // namespace
}  // namespace gnnd
