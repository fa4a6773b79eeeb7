// SPDX-License-Identifier: MIT
// build() and refine() on the CPU: the invariants over every kind of input, how good graphs are, what is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/device.h"
#include "gnnd/error.h"
#include "tests/cpu.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::cpu_params;
using test::expect_valid_graph;
using test::kDTypes;
using test::kMetrics;
using test::random_vectors;
using test::same_graph;
using test::Truth;
using test::Vectors;
using test::vectors_for;

struct Case {
    Metric metric;
    DType dtype;
    Update update;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << name_of(c.metric) << '_' << name_of(c.dtype) << '_' << name_of(c.update);
    }
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (Metric metric : kMetrics)
        for (DType dtype : kDTypes)
            for (Update update : {Update::selective, Update::all}) cases.push_back({metric, dtype, update});
    return cases;
}

class InvariantsTest : public testing::TestWithParam<Case> {
  protected:
    static BuildParams params(int k) {
        BuildParams params = cpu_params(k, GetParam().metric);
        params.update = GetParam().update;
        return params;
    }
    void run(std::int64_t n, std::int64_t d, int k) {
        SCOPED_TRACE(testing::Message() << "n " << n << ", d " << d << ", k " << k);
        const Vectors vectors = vectors_for(GetParam().metric, n, d, GetParam().dtype);
        BuildParams params = this->params(k);
        params.iterations = 3;
        params.trees = 2;
        const BuildResult result = build(vectors, params);
        expect_valid_graph(result.graph, vectors);
        EXPECT_EQ(result.stats.stop == StopReason::exact, n <= 1024);
    }
};

constexpr std::int64_t kDims[] = {1, 3, 31, 128, 257, 960};

TEST_P(InvariantsTest, HoldWhereAllPairsAreCompared) {
    for (std::int64_t n : {2, 3, 40})
        for (std::int64_t d : kDims)
            for (int k : {1, 10, 32}) run(n, d, k);
}

TEST_P(InvariantsTest, HoldWherePairsAreSampled) {
    for (std::int64_t d : {1, 31, 257}) run(1100, d, 10);
    for (int k : {1, 32}) run(1100, 31, k);
}

TEST_P(InvariantsTest, TheNeighboursAreTheTrueOnes) {
    const Vectors vectors = vectors_for(GetParam().metric, 1500, 12, GetParam().dtype);
    const double least = GetParam().update == Update::selective ? 0.9 : 0.95;
    EXPECT_GE(Truth(vectors, GetParam().metric).recall_of(build(vectors, params(16)).graph), least);
}

INSTANTIATE_TEST_SUITE_P(All, InvariantsTest, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

BuildParams params_of(int k, Init init) {
    BuildParams params = cpu_params(k);
    params.init = init;
    return params;
}

TEST(Build, SameSeedSameGraphOnAnyNumberOfThreads) {
    const Vectors vectors = random_vectors(1500, 20, DType::u8);  // u8: many ties
    for (Init init : kInits)
        for (Update update : {Update::selective, Update::all}) {
            BuildParams params = params_of(10, init);
            params.update = update;
            params.threads = 1;
            const BuildResult one = build(vectors, params);
            for (int threads : {1, 2, 5}) {
                params.threads = threads;
                EXPECT_TRUE(same_graph(build(vectors, params).graph, one.graph))
                    << threads << ' ' << name_of(init) << ' ' << name_of(update);
            }
            ++params.seed;
            EXPECT_NE(build(vectors, params).stats.iterations[0].phi, one.stats.iterations[0].phi);
        }
}

TEST(Build, KBeyondTheNumberOfObjectsIsPadded) {
    const Vectors vectors = random_vectors(7, 5, DType::f32);
    const BuildResult result = build(vectors, cpu_params(kMaxK));
    EXPECT_EQ(result.graph.k(), kMaxK);
    expect_valid_graph(result.graph, vectors);
}

TEST(Build, ShortListsAreFilled) {
    const Vectors vectors = random_vectors(2000, 4, DType::f32);
    BuildParams params = params_of(120, Init::random);
    params.samples = 2;
    params.iterations = 0;
    const BuildResult result = build(vectors, params);
    EXPECT_EQ(result.stats.stop, StopReason::iterations);
    expect_valid_graph(result.graph, vectors);
}

TEST(Build, LargeKAndSamples) {
    const Vectors vectors = random_vectors(4900, 6, DType::f32);
    BuildParams params = cpu_params(300);
    params.samples = 70;
    params.iterations = 1;
    const BuildResult result = build(vectors, params);
    expect_valid_graph(result.graph, vectors);
    EXPECT_NE(result.stats.stop, StopReason::exact);
}

TEST(Build, StridedRows) {
    const Vectors wide = random_vectors(1200, 8, DType::f32);
    VectorView strided = wide.view();
    strided.stride = strided.row_bytes();
    strided.d = 5;
    Vectors narrow(1200, 5, DType::f32);
    for (std::int64_t i = 0; i < 1200; ++i) {
        float row[8];
        copy_as_f32(wide, i, 1, row);
        for (int c = 0; c < 5; ++c) narrow.set(i, c, row[c]);
    }
    EXPECT_TRUE(same_graph(build(strided, cpu_params(5)).graph, build(narrow, cpu_params(5)).graph));
}

TEST(Build, EqualAndRepeatedRows) {
    for (int distinct : {1, 3, 100}) {
        Vectors vectors(2000, 4, DType::f32);
        for (int i = 0; i < 2000; ++i)
            for (int c = 0; c < 4; ++c) vectors.set(i, c, float((i % distinct) * (c + 1)));
        for (Init init : kInits) {
            const BuildResult result = build(vectors, params_of(10, init));
            expect_valid_graph(result.graph, vectors);
            EXPECT_EQ(result.stats.stop, StopReason::converged) << distinct;
        }
    }
}

TEST(Build, FarFromTheOriginNothingCancels) {
    Vectors vectors = random_vectors(1500, 16, DType::f32);
    for (int i = 0; i < 1500; ++i) {
        float row[16];
        copy_as_f32(vectors, i, 1, row);
        for (int c = 0; c < 16; ++c) vectors.set(i, c, row[c] + 1000);
    }
    const BuildResult result = build(vectors, cpu_params(10));
    expect_valid_graph(result.graph, vectors);
    EXPECT_GE(Truth(vectors, Metric::L2).recall_of(result.graph), 0.97);
}

TEST(Build, ReportsIterationsAsData) {
    const Vectors vectors = random_vectors(2000, 12, DType::f32);
    std::vector<IterationStats> seen;
    Callbacks callbacks;
    callbacks.progress = [&](const IterationStats& stats) { seen.push_back(stats); };
    BuildParams params = params_of(10, Init::random);
    params.threads = 2;
    const BuildResult result = build(vectors, params, callbacks);
    const BuildStats& stats = result.stats;
    EXPECT_EQ(stats.stop, StopReason::converged);
    ASSERT_EQ(seen.size(), stats.iterations.size());
    ASSERT_GT(seen.size(), 3u);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(stats.iterations[i].iteration, int(i));
        EXPECT_EQ(seen[i].phi, stats.iterations[i].phi);
        EXPECT_GT(seen[i].distances, 0);
        EXPECT_GE(seen[i].offered, seen[i].accepted);
        // The initial lists are not full; from then on phi(G) can only fall.
        if (i > 2) {
            EXPECT_LE(seen[i].phi, seen[i - 1].phi);
        }
    }
    EXPECT_LT(seen.back().changed, 0.001 * 2000 * 10);
    EXPECT_GE(seen[seen.size() - 2].changed, 0.001 * 2000 * 10);
    double phi = 0;
    for (std::int64_t e = 0; e < 2000 * 10; ++e) phi += result.graph.distances()[e];
    EXPECT_NEAR(seen.back().phi, phi, 1e-6 * phi);
    EXPECT_GT(stats.seconds, 0);
    EXPECT_EQ(stats.threads, 2);
    EXPECT_EQ(stats.device.name(), "cpu");
    EXPECT_GT(stats.peak_work_bytes, 2000 * 32 * 8);
}

TEST(Build, TakesNoMoreWorkMemoryThanPlanned) {
    for (const Metric metric : {Metric::L2, Metric::Cosine, Metric::L1})
        for (const DType dtype : {DType::u8, DType::f32}) {
            SCOPED_TRACE(std::string(name_of(metric)) + " " + std::string(name_of(dtype)));
            const Vectors vectors = vectors_for(metric, 20000, 24, dtype);
            BuildParams params = cpu_params(10, metric);
            for (const float recall : {0.0F, 0.8F}) {
                params.recall = recall;
                const BuildStats stats = build(vectors, params).stats;
                EXPECT_GT(stats.iterations.size(), 0u);
                EXPECT_LE(std::size_t(stats.peak_work_bytes), plan_memory(vectors, params).work) << recall;
            }
        }
}

TEST(Build, AutomaticIsAGpuWhereOneIs) {
    BuildParams params = cpu_params(10);
    params.device = {};
    const Vectors vectors = random_vectors(2000, 12, DType::f32);
    const BuildResult result = build(vectors, params);
    expect_valid_graph(result.graph, vectors);
    std::string why;
    if (device_usable(0, why)) {
        EXPECT_EQ(result.stats.device.name(), "cuda:0");
        EXPECT_EQ(result.stats.device_reason, "");
    } else {
        EXPECT_EQ(result.stats.device.name(), "cpu");
        EXPECT_EQ(result.stats.device_reason, why);
    }
}

TEST(Build, StopsAtTheGivenIteration) {
    const Vectors vectors = random_vectors(2000, 12, DType::f32);
    BuildParams params = params_of(10, Init::random);
    params.iterations = 2;
    params.delta = 0;
    const BuildStats stats = build(vectors, params).stats;
    EXPECT_EQ(stats.stop, StopReason::iterations);
    EXPECT_EQ(stats.iterations.size(), 3u);
}

TEST(Build, VerboseTellsEachIterationAndNothingIsPrinted) {
    const Vectors vectors = random_vectors(1100, 4, DType::f32);
    std::vector<std::string> lines;
    Callbacks callbacks;
    callbacks.verbose = [&](const std::string& line) { lines.push_back(line); };
    testing::internal::CaptureStdout();
    const BuildStats stats = build(vectors, cpu_params(10), callbacks).stats;
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    ASSERT_EQ(lines.size(), stats.iterations.size());
    EXPECT_TRUE(lines[1].starts_with("GNND iteration 1: phi(G) ")) << lines[1];
}

TEST(Build, UpdatesAgreeOnPhi) {
    const Vectors vectors = random_vectors(3000, 12, DType::f32);
    BuildParams params = cpu_params(20);
    params.update = Update::all;
    const double all = build(vectors, params).stats.iterations.back().phi;
    params.update = Update::selective;
    EXPECT_NEAR(build(vectors, params).stats.iterations.back().phi, all, 0.01 * all);
}

TEST(Build, TwoAtOnce) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    const KnnGraph expected = build(vectors, cpu_params(10)).graph;
    KnnGraph graphs[2];
    std::thread other([&] { graphs[0] = build(vectors, cpu_params(10)).graph; });
    graphs[1] = build(vectors, cpu_params(10)).graph;
    other.join();
    EXPECT_TRUE(same_graph(graphs[0], expected));
    EXPECT_TRUE(same_graph(graphs[1], expected));
}

TEST(Refine, MakesAGraphOfAnyGraph) {
    const Vectors vectors = random_vectors(2000, 10, DType::f32);
    // Neighbours by number, wrong distances, some of them missing, self or twice.
    KnnGraph start(2000, 6, Metric::L2);
    for (int i = 0; i < 2000; ++i)
        for (int j = 0; j < 5; ++j) start.ids()[i * 6 + j] = (i + j * j) % 2000;
    const BuildResult result = refine(vectors, start, cpu_params(10));
    expect_valid_graph(result.graph, vectors);
    EXPECT_GE(Truth(vectors, Metric::L2).recall_of(result.graph), 0.97);

    // A good graph is a good start.
    const BuildResult again = refine(vectors, result.graph, cpu_params(10));
    EXPECT_LE(again.stats.iterations.back().phi, result.stats.iterations.back().phi * (1 + 1e-9));
}

TEST(Refine, RefusesWhatDoesNotFit) {
    const Vectors vectors = random_vectors(2000, 10, DType::f32);
    EXPECT_THROW(refine(vectors, KnnGraph(1999, 5, Metric::L2), cpu_params(10)), InvalidArgument);
    EXPECT_THROW(refine(vectors, KnnGraph(2000, 5, Metric::L1), cpu_params(10)), InvalidArgument);
    EXPECT_THROW(refine(vectors, KnnGraph(2000, 2000, Metric::L2), cpu_params(10)), InvalidArgument);
    KnnGraph graph(2000, 5, Metric::L2);
    graph.ids()[17] = 2000;
    EXPECT_THROW(refine(vectors, graph, cpu_params(10)), InvalidArgument);
}

}  // namespace
}  // namespace gnnd
