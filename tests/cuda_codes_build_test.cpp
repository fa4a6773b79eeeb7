// SPDX-License-Identifier: MIT
// Builds that compare floats as int8. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/resources.h"
#include "tests/gpu.h"
#include "tests/hard_sets.h"
#include "tests/invariants.h"
#include "tests/reference.h"

namespace gnnd::test {
namespace {

/// Clusters far apart: what is near is nearer than codes can tell.
Vectors too_fine_for_codes(std::int64_t n) {
    return vectors_of(hard_sets()[4], n, DType::f32);
}

class CudaCodes : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_F(CudaCodes, ReachTheRecallOnEveryMetricThatHasThem) {
    for (const Metric metric : {Metric::L2, Metric::Cosine, Metric::InnerProduct})
        for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
            const Vectors vectors = vectors_for(metric, 20000, 100, dtype);
            const Truth truth(vectors, metric);
            for (const Codes codes : {Codes::automatic, Codes::int8})
                for (const bool deterministic : {false, true}) {
                    SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype) << ' ' << name_of(codes)
                                                    << ' ' << deterministic);
                    BuildParams params = gpu_params(20, metric);
                    params.codes = codes;
                    params.deterministic = deterministic;
                    params.trees = 10;  // a limit, without which small sets are compared pair by pair
                    const BuildResult result = build(vectors, params);
                    // Of inner products only the recall tells whether codes do, so that float16 may follow.
                    const bool similarity = metric == Metric::InnerProduct;
                    if (!similarity || codes == Codes::automatic) {
                        EXPECT_EQ(name_of(result.stats.choices.codes), name_of(similarity ? Codes::none : Codes::int8));
                    }
                    EXPECT_GE(result.stats.recall.value, 0.99);
                    EXPECT_GE(truth.recall_of(result.graph), 0.985);
                    expect_valid_graph(result.graph, vectors);
                    if (deterministic) {
                        EXPECT_TRUE(same_graph(build(vectors, params).graph, result.graph));
                    }
                }
        }
}

/// With the paper's stop codes must have lost nothing that counts of the nearest ten.
TEST_F(CudaCodes, LoseNothingNear) {
    const Vectors vectors = random_vectors(20000, 64, DType::f32);
    const Truth truth(vectors, Metric::L2);
    BuildParams params = converging(gpu_params(32));
    const double without = truth.recall_of(build(vectors, params).graph);
    params.codes = Codes::int8;
    const BuildResult result = build(vectors, params);
    EXPECT_EQ(name_of(result.stats.choices.codes), name_of(Codes::int8));
    EXPECT_GE(truth.recall_of(result.graph), without - 0.002);
}

TEST_F(CudaCodes, AreLeftWhereTheyAreTooCoarse) {
    const Vectors vectors = too_fine_for_codes(20000);
    for (const bool deterministic : {false, true}) {
        BuildParams params = gpu_params(20);
        params.codes = Codes::automatic;
        params.deterministic = deterministic;
        params.trees = 10;
        const BuildResult result = build(vectors, params);
        EXPECT_EQ(name_of(result.stats.choices.codes), name_of(Codes::none));
        EXPECT_GE(result.stats.recall.value, 0.99);
    }
}

/// Asked for they are used, until the recall says that they are not enough.
TEST_F(CudaCodes, GiveWayToFloat16WhereTheRecallIsMissed) {
    const Vectors vectors = too_fine_for_codes(20000);
    for (const bool deterministic : {false, true})
        for (const Update update : {Update::automatic, Update::selective}) {
            if (!has_update(update)) continue;
            BuildParams params = gpu_params(20);
            params.codes = Codes::int8;
            params.deterministic = deterministic;
            params.update = update;
            params.trees = 10;  // a limit, which keeps it from comparing all pairs
            const BuildResult result = build(vectors, params);
            EXPECT_EQ(name_of(result.stats.choices.codes), name_of(Codes::none));
            EXPECT_EQ(name_of(result.stats.stop), name_of(StopReason::recall));
            EXPECT_GE(Truth(vectors, Metric::L2).recall_of(result.graph), 0.985);
            for (std::size_t i = 0; i < result.stats.iterations.size(); ++i)
                EXPECT_EQ(result.stats.iterations[i].iteration, int(i));
            expect_valid_graph(result.graph, vectors);
            if (deterministic) {
                EXPECT_TRUE(same_graph(build(vectors, params).graph, result.graph));
            }
            params.recall = 0;
            EXPECT_EQ(name_of(build(vectors, params).stats.choices.codes), name_of(Codes::int8));
        }
}

TEST_F(CudaCodes, LeaveExactGraphsExact) {
    const Vectors vectors = random_vectors(20000, 64, DType::f32);
    BuildParams params = gpu_params(10);
    params.recall = 1;
    const KnnGraph expected = build(vectors, params).graph;
    params.codes = Codes::int8;
    const KnnGraph graph = build(vectors, params).graph;
    EXPECT_TRUE(std::equal(graph.distances(), graph.distances() + 20000 * 10, expected.distances()));
}

TEST_F(CudaCodes, TakeNoMoreMemory) {
    const Vectors vectors = random_vectors(20000, 100, DType::f32);
    BuildParams params = gpu_params(20);
    std::size_t peaks[2];
    for (const Codes codes : {Codes::none, Codes::int8}) {
        params.codes = codes;
        params.trees = 10;
        HeapResources heap;
        CountedResources counted(heap);
        build(vectors, params, {}, &counted);
        peaks[codes == Codes::int8] = counted.peak();
    }
    EXPECT_LE(peaks[1], peaks[0]);
}

TEST_F(CudaCodes, OfBadRowsAreRefused) {
    for (const Metric metric : {Metric::L2, Metric::Cosine}) {
        Vectors vectors = vectors_for(metric, 5000, 40, DType::f32);
        BuildParams params = gpu_params(20, metric);
        params.codes = Codes::int8;
        vectors.set(4321, 20, NAN);
        EXPECT_THROW(build(vectors, params), InvalidArgument);
        vectors.set(4321, 20, INFINITY);
        EXPECT_THROW(build(vectors, params), InvalidArgument);
    }
}

class CudaHardSetsAsCodes : public testing::TestWithParam<HardSet> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaHardSetsAsCodes, HaveTheDefaultsRecall) {
    const HardSet& set = GetParam();
    const Vectors vectors = vectors_of(set, 20000, DType::f32);
    const Truth truth(vectors, set.metric);
    for (const int k : {10, 64}) {
        BuildParams params = gpu_params(k, set.metric);
        params.codes = Codes::int8;
        params.deterministic = true;  // otherwise all pairs may cost less from the start
        const BuildResult result = build(vectors, params);
        EXPECT_GE(truth.recall_of(result.graph), 0.985);
        EXPECT_GE(result.stats.recall.value, 0.99);
        expect_valid_graph(result.graph, vectors);
    }
}

INSTANTIATE_TEST_SUITE_P(All, CudaHardSetsAsCodes, testing::ValuesIn(hard_sets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gnnd::test
