// SPDX-License-Identifier: MIT
// Builds on a GPU that are asked for a recall: it is measured, and reached within the limits that are set.
#include <gtest/gtest.h>

#include <cmath>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"
#include "gnnd/resources.h"
#include "tests/all_columns.h"
#include "tests/all_objects.h"
#include "tests/gpu.h"
#include "tests/hard_sets.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/reference.h"

namespace gnnd::test {
namespace {

class CudaRecall : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_F(CudaRecall, CopiesAndEqualVectorsAreCompared) {
    constexpr std::int64_t kN = 3000, kD = 16;
    Vectors equal(kN, kD, DType::f32), copies = random_vectors(kN, kD, DType::f32);
    const std::vector<float> row(kD, 0.3f);
    std::vector<float> original(kD);
    for (std::int64_t i = 0; i < kN; ++i)
        for (std::int64_t c = 0; c < kD; ++c) {
            equal.set(i, c, row[c]);
            if (i % 50 == 0) copy_as_f32(copies.view(), i, 1, original.data());
            copies.set(i, c, original[c]);
        }
    for (const Vectors* vectors : {&equal, &copies})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1}) {
            SCOPED_TRACE(name_of(metric));
            expect_exact(*vectors, build_exact(*vectors, gpu_params(20, metric)).graph, all_of(kN));
        }
}

/// A line's lists do not reach the recall, and longer ones would hold every second object: all pairs take less then,
/// which a deterministic build does not choose before.
TEST_F(CudaRecall, WithoutRoomForLongerListsComparesAllPairs) {
    constexpr std::int64_t kN = 1100, kD = 3;
    Vectors line(kN, kD, DType::f32);
    for (std::int64_t i = 0; i < kN; ++i)
        for (std::int64_t c = 0; c < kD; ++c) line.set(i, c, float(i) * 0.7f + float(c));
    for (const bool deterministic : {true, false}) {
        SCOPED_TRACE(deterministic);
        BuildParams params = gpu_params(511, Metric::L1);
        params.recall = 0.9999f;
        params.deterministic = deterministic;
        const BuildResult result = build(line, params);
        EXPECT_GE(result.stats.recall.value, 0.9999);
        if (result.stats.stop == StopReason::exact) expect_exact(line, result.graph, all_of(kN));
    }
}

TEST_F(CudaRecall, OfOneIsAllPairs) {
    const Vectors vectors = random_vectors(5000, 24, DType::f32);
    BuildParams params = gpu_params(10);
    params.recall = 1;
    const MemoryPlan plan = plan_memory(vectors, params);
    EXPECT_TRUE(plan.choices.exhaustive);
    params.device_memory = std::int64_t(plan.total());
    HeapResources heap;
    CountedResources counted(heap);
    const BuildResult result = build(vectors, params, {}, &counted);
    EXPECT_EQ(result.stats.stop, StopReason::exact);
    EXPECT_EQ(result.stats.recall.value, 1);
    EXPECT_LE(counted.peak(), plan.total());
    expect_exact(vectors, result.graph, all_of(5000));
    params.device_memory = 1 << 20;
    EXPECT_THROW(build(vectors, params), OutOfDeviceMemory);
}

/// Sets whose neighbours float16 does not tell, of so many objects that some of them are asked before all are compared.
TEST_F(CudaRecall, OfOneIsAllPairsWhereBoundsFromASampleSayLittle) {
    constexpr std::int64_t kN = 52000;
    std::vector<std::int32_t> some;
    for (std::int32_t i = 0; i < kN; i += 400) some.push_back(i);
    for (const HardSet& set : hard_sets()) {
        if (set.name != "line1" && set.name != "walk32" && set.name != "column16" && set.name != "copies32") continue;
        SCOPED_TRACE(set.name);
        const Vectors vectors = vectors_of(set, kN, DType::f32);
        BuildParams params = gpu_params(64);
        params.recall = 1;
        const MemoryPlan plan = plan_memory(vectors, params);
        params.device_memory = std::int64_t(plan.total());
        HeapResources heap;
        CountedResources counted(heap);
        const BuildResult result = build(vectors, params, {}, &counted);
        EXPECT_EQ(result.stats.stop, StopReason::exact);
        EXPECT_LE(counted.peak(), plan.total());
        expect_valid_graph(result.graph, vectors);
        expect_exact(vectors, result.graph, some);
    }
}

/// Less memory than the set takes: its parts are compared two by two, and the graph is the same.
TEST_F(CudaRecall, OfOneIsAllPairsInPartsToo) {
    constexpr std::int64_t kN = 20000, kD = 24;
    std::vector<std::int32_t> some;
    for (std::int32_t i = 0; i < kN; i += 40) some.push_back(i);
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1})
        for (const DType dtype : {DType::f32, DType::u8}) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            const Vectors vectors = vectors_for(metric, kN, kD, dtype);
            BuildParams params = gpu_params(10, metric);
            params.recall = 1;
            const MemoryPlan whole = plan_memory(vectors, params);
            EXPECT_EQ(whole.choices.parts, 1);
            params.device_memory = std::int64_t(whole.total() * 3 / 5);
            const MemoryPlan plan = plan_memory(vectors, params);
            EXPECT_GT(plan.choices.parts, 2);
            EXPECT_TRUE(plan.choices.exhaustive);
            EXPECT_LE(std::int64_t(plan.total()), params.device_memory);
            HeapResources heap;
            CountedResources counted(heap);
            const BuildResult result = build(vectors, params, {}, &counted);
            EXPECT_EQ(result.stats.stop, StopReason::exact);
            EXPECT_EQ(result.stats.recall.value, 1);
            EXPECT_EQ(result.stats.choices.parts, plan.choices.parts);
            EXPECT_LE(std::int64_t(counted.peak()), params.device_memory);
            EXPECT_EQ(counted.held(), 0u);
            for (std::size_t i = 0; i < result.stats.iterations.size(); ++i)
                EXPECT_EQ(result.stats.iterations[i].iteration, int(i));
            expect_valid_graph(result.graph, vectors);
            expect_exact(vectors, result.graph, some);
        }
}

/// Two sets that do not adjoin, one of them smaller than a part, on the host and on the device.
TEST_F(CudaRecall, OfOneInPartsOfTwoSets) {
    constexpr std::int64_t kD = 24;
    constexpr int kK = 12;
    for (const std::int64_t n2 : {1, 900, 9000}) {
        SCOPED_TRACE(n2);
        const std::int64_t n1 = 16000, n = n1 + n2;
        const Vectors vectors = vectors_for(Metric::L2, n, kD, DType::f32);
        VectorView x1 = vectors, x2 = x1;
        x1.n = n1;
        x2.n = n2;
        x2.data = x1.row(n1);
        BuildParams params = gpu_params(kK);
        params.recall = 1;
        params.device_memory = std::int64_t(plan_memory(vectors, params).total() * 4 / 5);
        const KnnGraph g1 = build_exact(x1, gpu_params(kK)).graph;
        const BuildResult result = append(x1, g1, x2, params, {}, nullptr, AppendMethod::search);
        EXPECT_EQ(result.stats.stop, StopReason::exact);
        EXPECT_GT(result.stats.choices.parts, 1);
        std::vector<std::int32_t> some;
        for (std::int64_t i = 0; i < n; i += i < n1 ? 50 : n2 < 1000 ? 1 : 20) some.push_back(std::int32_t(i));
        expect_valid_graph(result.graph, vectors);
        expect_exact(vectors, result.graph, some);

        const OnDevice<std::byte> copy(std::size_t(n * x1.row_bytes()), static_cast<const std::byte*>(x1.data));
        const OnDevice<std::int32_t> ids(std::size_t(n) * kK);
        const OnDevice<float> distances(std::size_t(n) * kK);
        EXPECT_EQ(build_into({copy.get(), n, kD, DType::f32, 0}, params, ids, distances).stop, StopReason::exact);
        const std::vector<float> found = distances.read();
        const float* wanted = result.graph.distances();
        int wrong = 0;  // the host compares the smallest parts, and rounds otherwise
        for (std::size_t i = 0; i < found.size(); ++i) wrong += std::abs(found[i] - wanted[i]) > 1e-5f * wanted[i];
        EXPECT_EQ(wrong, 0);
    }
}

TEST_F(CudaRecall, IsMeasuredAndReached) {
    const Vectors vectors = random_vectors(20000, 32, DType::f32);
    BuildParams params = gpu_params(10, Metric::L2);
    params.recall = 0.95f;
    params.deterministic = true;  // others compare all pairs of so few
    const BuildResult result = build(vectors, params);
    EXPECT_EQ(result.stats.stop, StopReason::recall);
    EXPECT_EQ(result.stats.recall.at, 10);
    EXPECT_EQ(result.stats.recall.objects, 4096);
    EXPECT_GE(result.stats.recall.low, 0.95);
    EXPECT_LE(result.stats.recall.low, result.stats.recall.value);
    EXPECT_LE(result.stats.recall.value, result.stats.recall.high);
    EXPECT_GT(result.stats.recall_seconds, 0);
}

TEST_F(CudaRecall, TellsOfAllColumnsAndGoesOnForThem) {
    BuildParams params = gpu_params(64);
    params.deterministic = true;  // others compare all pairs of so few
    test::expect_all_columns(params);
}

/// By the rates of predict.h, before anything is built; a limit that the user sets, and what must not depend on chance
/// or on a machine's rates, keep to iterations.
TEST_F(CudaRecall, AllPairsAreTakenAtOnceWhereTheyArePredictedToCostLess) {
    const Vectors vectors = random_vectors(20000, 32, DType::f32);
    const auto chosen = [&](auto change) {
        BuildParams params = gpu_params(10);
        change(params);
        const bool exhaustive = build(vectors, params).stats.choices.exhaustive;
        EXPECT_EQ(plan_memory(vectors, params).choices.exhaustive, exhaustive);
        return exhaustive;
    };
    EXPECT_TRUE(chosen([](BuildParams&) {}));
    EXPECT_TRUE(chosen([](BuildParams& params) { params.recall = 0.999f; }));
    EXPECT_FALSE(chosen([](BuildParams& params) { params.recall = 0; }));
    EXPECT_FALSE(chosen([](BuildParams& params) { params.iterations = 5; }));
    EXPECT_FALSE(chosen([](BuildParams& params) { params.deterministic = true; }));
    EXPECT_FALSE(chosen([](BuildParams& params) { params.metric = Metric::L1; })) << "no rates were measured";
    EXPECT_EQ(build(vectors, gpu_params(10)).stats.stop, StopReason::exact);
}

/// The share of the first `at` entries that are not farther than the at-th of the exact graph.
double recall_of(const KnnGraph& graph, const KnnGraph& exact, int at) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < graph.n(); ++i)
        for (int j = 0; j < at; ++j) found += graph.distances_of(i)[j] <= exact.distances_of(i)[at - 1];
    return double(found) / double(graph.n() * at);
}

TEST_F(CudaRecall, IsWhatTheIntervalSays) {
    constexpr int kBuilds = 200;
    const Vectors vectors = vectors_of(hard_sets()[0], 20000, DType::f32);
    const KnnGraph exact = build_exact(vectors, gpu_params(10)).graph;
    int held = 0;
    for (int seed = 0; seed < kBuilds; ++seed) {
        BuildParams params = gpu_params(10);
        params.seed = std::uint64_t(seed);
        params.iterations = 1 + seed % 4;
        const BuildResult result = build(vectors, params);
        const double truth = recall_of(result.graph, exact, 10);
        held += result.stats.recall.low <= truth && truth <= result.stats.recall.high;
    }
    EXPECT_GE(held, 0.91 * kBuilds);
}

TEST_F(CudaRecall, LimitsStayLimits) {
    const Vectors vectors = vectors_of(hard_sets()[2], 6000, DType::f32);
    const auto missed = [&](auto change) {
        BuildParams params = gpu_params(10);
        change(params);
        const BuildResult result = build(vectors, params);
        EXPECT_EQ(result.stats.stop, StopReason::recall_missed);
        EXPECT_LT(result.stats.recall.low, 0.99);
        EXPECT_GT(result.stats.recall.objects, 0);
        return result.stats;
    };
    EXPECT_EQ(missed([](BuildParams& params) { params.iterations = 2; }).iterations.size(), 3u);
    EXPECT_EQ(missed([](BuildParams& params) { params.list_size = 12; }).choices.list_size, 12);
    EXPECT_EQ(missed([](BuildParams& params) { params.samples = 5; }).choices.samples, 5);
}

TEST_F(CudaRecall, MemoryIsALimit) {
    const Vectors vectors = vectors_of(hard_sets()[2], 200000, DType::f32);  // of fewer all pairs come first
    BuildParams params = gpu_params(32);  // with 10 all pairs take less than what a build takes anyway
    const std::int64_t all = std::int64_t(plan_memory(vectors, params).total());
    // Once candidates have fewer places, comparing all pairs takes more memory than they and the samples do.
    const std::string why = "iterations, as the memory does not hold what all pairs take";
    for (params.device_memory = all; plan_memory(vectors, params).why != why;) params.device_memory -= all / 64;
    HeapResources heap;
    CountedResources counted(heap);
    EXPECT_EQ(build(vectors, params, {}, &counted).stats.stop, StopReason::recall_missed);
    EXPECT_LE(std::int64_t(counted.peak()), params.device_memory);
    // With the whole memory of the plan, comparing all pairs takes the place of both.
    params.device_memory = all;
    CountedResources whole(heap);
    EXPECT_EQ(build(vectors, params, {}, &whole).stats.stop, StopReason::exact);
    EXPECT_LE(std::int64_t(whole.peak()), params.device_memory);
    params.device_memory = 0;
    EXPECT_EQ(build(vectors, params).stats.stop, StopReason::exact);
}

/// A limit on the trees that is none keeps it from comparing all pairs.
TEST_F(CudaRecall, ListsGrow) {
    const Vectors vectors = vectors_of(hard_sets()[0], 20000, DType::f32);
    for (const bool deterministic : {false, true}) {
        BuildParams params = gpu_params(10);
        params.trees = 10;
        params.device_memory = std::int64_t(1) << 30;  // lists begin short where it is bounded
        params.deterministic = deterministic;
        const BuildResult result = build(vectors, params);
        EXPECT_EQ(result.stats.stop, StopReason::recall);
        EXPECT_GE(result.stats.choices.list_size, 64);
        for (std::size_t i = 0; i < result.stats.iterations.size(); ++i)
            EXPECT_EQ(result.stats.iterations[i].iteration, int(i));
        expect_valid_graph(result.graph, vectors);
        if (deterministic) {
            EXPECT_TRUE(same_graph(build(vectors, params).graph, result.graph));
        }
    }
}

struct Asked {
    HardSet set;
    int k;
    friend std::ostream& operator<<(std::ostream& out, const Asked& c) { return out << c.set.name << "_k" << c.k; }
};

class CudaHardSets : public testing::TestWithParam<Asked> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaHardSets, HaveTheDefaultsRecall) {
    const auto& [set, k] = GetParam();
    const Vectors vectors = vectors_of(set, 20000, DType::f32);
    const BuildResult result = build(vectors, gpu_params(k, set.metric));
    EXPECT_GE(Truth(vectors, set.metric).recall_of(result.graph), 0.985);
    EXPECT_GE(result.stats.recall.value, 0.99);
    EXPECT_TRUE(result.stats.stop == StopReason::recall || result.stats.stop == StopReason::exact);
    expect_valid_graph(result.graph, vectors);
}

std::vector<Asked> all_asked() {
    std::vector<Asked> all;
    for (const HardSet& set : hard_sets())
        for (const int k : {10, 64}) all.push_back({set, k});
    return all;
}
INSTANTIATE_TEST_SUITE_P(All, CudaHardSets, testing::ValuesIn(all_asked()), testing::PrintToStringParamName());

}  // namespace
}  // namespace gnnd::test
