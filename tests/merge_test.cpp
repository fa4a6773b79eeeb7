// merge() on the CPU: GGM's invariants, what it must not lose, how good it is, and what it refuses.
#include "gnnd/merge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/merge_cases.h"
#include "tests/reference.h"

namespace gnnd {
namespace {

using test::expect_valid_graph;
using test::Halves;
using test::message_of;
using test::random_vectors;
using test::Vectors;
using test::vectors_for;

BuildParams params_of(int k, Metric metric = Metric::L2) {
    BuildParams params;
    params.k = k;
    params.metric = metric;
    params.device.kind = Device::Kind::cpu;
    return params;
}

TEST(Merge, KeepsTheInvariants) {
    for (const test::MergeCase& c : test::merge_cases()) {
        SCOPED_TRACE(c);
        test::expect_good_merge(c, params_of(c.k, c.metric));
    }
}

TEST(Merge, OfHalvesIsAsGoodAsOneBuild) {
    const io::VectorFile sample(GNND_TEST_DATA "/photosift20k.u8bin");
    for (const Init init : {Init::projection, Init::random})
        for (const Update update : {Update::all, Update::selective}) {
            BuildParams params = params_of(32);
            params.init = init;
            params.update = update;
            SCOPED_TRACE(testing::Message() << name_of(init) << ", " << name_of(update));
            test::expect_recall_of_one_build(sample.view(), 10000, params, 0.003);
        }
}

TEST(Merge, OfSetsThatLieApartIsAsGoodAsOneBuild) {
    const io::VectorFile sample(GNND_TEST_DATA "/photosift20k.u8bin");
    test::expect_recall_of_one_build(test::sorted_by_distance(sample.view()), 10000, params_of(32), 0.003);
}

/// Every object has a twin in the other set, at no distance.
TEST(Merge, FindsTheTwinsOfTheSameSetTwice) {
    const io::VectorFile sample(GNND_TEST_DATA "/photosift20k.u8bin");
    const VectorView half = test::rows_of(sample.view(), 0, 5000);
    const KnnGraph graph = build(half, params_of(20)).graph;
    const BuildResult result = merge(half, graph, half, graph, params_of(20));
    std::int64_t found = 0;
    for (int i = 0; i < 10000; ++i) {
        EXPECT_EQ(result.graph.distances_of(i)[0], 0);
        found += std::count(result.graph.ids_of(i), result.graph.ids_of(i) + 20, (i + 5000) % 10000);
    }
    EXPECT_GE(found, 9990);
}

TEST(Merge, IsTheSameOnAnyNumberOfThreads) {
    const Vectors vectors = random_vectors(4000, 12, DType::u8);
    const Halves halves(vectors, 1500, params_of(16));
    BuildParams params = params_of(16);
    params.threads = 1;
    const KnnGraph expected = halves.merge(params).graph;
    for (const int threads : {2, 5}) {
        params.threads = threads;
        EXPECT_TRUE(test::same_graph(halves.merge(params).graph, expected)) << threads;
    }
}

TEST(Merge, RefusesWhatDoesNotFit) {
    const Vectors vectors = random_vectors(3000, 6, DType::f32);
    const Halves halves(vectors, 2000, params_of(8));
    const auto refused = [&](const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                             const BuildParams& params) {
        return message_of<InvalidArgument>([&] { merge(x1, g1, x2, g2, params); });
    };
    const auto& [x1, x2, g1, g2] = halves;
    EXPECT_EQ(refused(x1, g2, x2, g2, params_of(8)), "merge: the first graph has 1000 objects, its vectors are 2000");
    EXPECT_EQ(refused(x1, g1, x2, g2, params_of(8, Metric::L1)),
              "merge: the first graph was made under l2, asked for is l1");
    const Vectors other = random_vectors(1000, 7, DType::f32);
    EXPECT_EQ(refused(x1, g1, other, g2, params_of(8)), "merge: vectors of 6 f32 and of 7 f32");
    const Vectors typed = random_vectors(1000, 6, DType::u8);
    EXPECT_EQ(refused(x1, g1, typed, g2, params_of(8)), "merge: vectors of 6 f32 and of 6 u8");
    KnnGraphView null = g2;
    null.ids = nullptr;
    EXPECT_EQ(refused(x1, g1, x2, null, params_of(8)), "merge: the second graph's arrays are null pointers");
    VectorView nothing = x2;
    nothing.data = nullptr;
    EXPECT_EQ(refused(x1, g1, nothing, g2, params_of(8)), "vectors are a null pointer");
    KnnGraph wrong = test::copy_of(g2);
    wrong.ids()[17] = 1000;
    EXPECT_EQ(refused(x1, g1, x2, wrong, params_of(8)), "graph.ids[17] = 1000 is outside of [-1, 1000)");
    const VectorView none{nullptr, 0, 6, DType::f32, 0};
    EXPECT_EQ(
        refused(none, {0, 8, Metric::L2, nullptr, nullptr}, none, {0, 8, Metric::L2, nullptr, nullptr}, params_of(8)),
        "merge: both sets are empty");
    EXPECT_EQ(message_of<InvalidArgument>([&] { merge_into(x1, g1, x2, g2, params_of(8), nullptr, nullptr); }),
              "merge_into: the arrays are null pointers");
}

TEST(Merge, EndsWhenAsked) {
    const Vectors vectors = random_vectors(4000, 6, DType::f32);
    const Halves halves(vectors, 2000, params_of(8));
    Callbacks callbacks;
    int iterations = 0;
    callbacks.progress = [&](const IterationStats&) { ++iterations; };
    callbacks.interrupt = [&] { return iterations == 2; };
    const auto& [x1, x2, g1, g2] = halves;
    EXPECT_THROW(merge(x1, g1, x2, g2, params_of(8), callbacks), Interrupted);
}

}  // namespace
}  // namespace gnnd
