// build() and refine(): the invariants over every kind of input, and every kind of refusal.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::expect_valid_graph;
using test::order_of;
using test::random_vectors;
using test::Vectors;

constexpr Metric kMetrics[] = {Metric::L2, Metric::InnerProduct, Metric::Cosine,
                               Metric::L1, Metric::Linf,         Metric::ChiSquare};
constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::u8, DType::i8};

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
    void run(std::int64_t n, std::int64_t d, int k) {
        SCOPED_TRACE(testing::Message() << "n " << n << ", d " << d << ", k " << k);
        const Case c = GetParam();
        Vectors vectors = random_vectors(n, d, c.dtype, c.metric == Metric::ChiSquare);
        if (c.metric == Metric::Cosine)
            for (std::int64_t i = 0; i < n; ++i) vectors.set(i, 0, 1);  // no zero vectors
        BuildParams params;
        params.k = k;
        params.metric = c.metric;
        params.update = c.update;
        params.iterations = 3;
        params.trees = 2;
        const BuildResult result = build(vectors, params);
        expect_valid_graph(result.graph, vectors);
        EXPECT_EQ(result.stats.stop == StopReason::exhaustive, n <= 1024);
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

INSTANTIATE_TEST_SUITE_P(All, InvariantsTest, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

BuildParams params_of(int k, Init init = Init::projection) {
    BuildParams params;
    params.k = k;
    params.init = init;
    return params;
}

bool equal(const KnnGraph& a, const KnnGraph& b) {
    return a.n() == b.n() && a.k() == b.k() && std::equal(a.ids(), a.ids() + a.n() * a.k(), b.ids()) &&
           std::equal(a.distances(), a.distances() + a.n() * a.k(), b.distances());
}

TEST(Build, SameSeedSameGraphOnAnyNumberOfThreads) {
    const Vectors vectors = random_vectors(1500, 20, DType::u8);  // u8: many ties
    for (Init init : {Init::random, Init::projection})
        for (Update update : {Update::selective, Update::all}) {
            BuildParams params = params_of(10, init);
            params.update = update;
            params.threads = 1;
            const BuildResult one = build(vectors, params);
            for (int threads : {1, 2, 5}) {
                params.threads = threads;
                EXPECT_TRUE(equal(build(vectors, params).graph, one.graph))
                    << threads << ' ' << name_of(init) << ' ' << name_of(update);
            }
            ++params.seed;
            EXPECT_NE(build(vectors, params).stats.iterations[0].phi, one.stats.iterations[0].phi);
        }
}

TEST(Build, KBeyondTheNumberOfObjectsIsPadded) {
    const Vectors vectors = random_vectors(7, 5, DType::f32);
    const BuildResult result = build(vectors, params_of(kMaxK));
    EXPECT_EQ(result.graph.k(), kMaxK);
    expect_valid_graph(result.graph, vectors);
}

TEST(Build, ShortListsAreFilled) {
    const Vectors vectors = random_vectors(1500, 4, DType::f32);
    BuildParams params = params_of(200, Init::random);
    params.samples = 2;
    params.iterations = 0;
    expect_valid_graph(build(vectors, params).graph, vectors);
}

TEST(Build, LargeKAndSamples) {
    const Vectors vectors = random_vectors(2300, 6, DType::f32);
    BuildParams params = params_of(kMaxK);
    params.samples = 70;
    params.iterations = 1;
    const BuildResult result = build(vectors, params);
    expect_valid_graph(result.graph, vectors);
    EXPECT_NE(result.stats.stop, StopReason::exhaustive);
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
    EXPECT_TRUE(equal(build(strided, params_of(5)).graph, build(narrow, params_of(5)).graph));
}

TEST(Build, EqualAndRepeatedRows) {
    for (int distinct : {1, 3, 100}) {
        Vectors vectors(2000, 4, DType::f32);
        for (int i = 0; i < 2000; ++i)
            for (int c = 0; c < 4; ++c) vectors.set(i, c, float((i % distinct) * (c + 1)));
        for (Init init : {Init::random, Init::projection}) {
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
    const BuildResult result = build(vectors, params_of(10));
    expect_valid_graph(result.graph, vectors);
    std::vector<std::int32_t> objects{0, 100, 200, 300, 400, 500, 1499};
    const KnnGraph truth = exact_neighbors(vectors, objects.data(), std::int64_t(objects.size()), 10, Metric::L2);
    EXPECT_GE(test::recall_at(result.graph, truth, objects, 10), 0.95);
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

TEST(Build, StopsAtTheGivenIteration) {
    const Vectors vectors = random_vectors(2000, 12, DType::f32);
    BuildParams params = params_of(10, Init::random);
    params.iterations = 2;
    params.delta = 0;
    const BuildStats stats = build(vectors, params).stats;
    EXPECT_EQ(stats.stop, StopReason::iterations);
    EXPECT_EQ(stats.iterations.size(), 3u);
}

TEST(Build, VerbosePrintsTheIterations) {
    const Vectors vectors = random_vectors(1100, 4, DType::f32);
    BuildParams params = params_of(10);
    params.verbose = true;
    testing::internal::CaptureStdout();
    build(vectors, params);
    EXPECT_NE(testing::internal::GetCapturedStdout().find("GNND iteration 1: phi(G)"), std::string::npos);
}

TEST(Build, UpdatesAgreeOnPhi) {
    const Vectors vectors = random_vectors(3000, 12, DType::f32);
    BuildParams params = params_of(20);
    params.update = Update::all;
    const double all = build(vectors, params).stats.iterations.back().phi;
    params.update = Update::selective;
    EXPECT_NEAR(build(vectors, params).stats.iterations.back().phi, all, 0.01 * all);
}

/// The error that building gives; empty if there is none.
std::string error_of(const VectorView& vectors, const BuildParams& params = params_of(3)) {
    try {
        build(vectors, params);
    } catch (const InvalidArgument& e) {
        return e.what();
    }
    return "";
}

TEST(BuildErrors, ShapesAreChecked) {
    const Vectors vectors = random_vectors(4, 3, DType::f32);
    VectorView view = vectors;
    view.n = 0;
    EXPECT_EQ(error_of(view), "0 vectors; a graph needs 2 to 2147483647");
    view.n = 1;
    EXPECT_EQ(error_of(view), "1 vectors; a graph needs 2 to 2147483647");
    view.n = std::int64_t(1) << 31;
    EXPECT_NE(error_of(view), "");
    view = vectors;
    view.d = 0;
    EXPECT_EQ(error_of(view), "vectors of dimension 0; allowed are 1 to 1048576");
    view = vectors;
    view.data = nullptr;
    EXPECT_EQ(error_of(view), "vectors are a null pointer");
    view = vectors;
    view.stride = 8;
    EXPECT_EQ(error_of(view), "VectorView::stride of 8 bytes is less than a row");
    view = vectors;
    view.dtype = DType::i32;
    EXPECT_EQ(error_of(view), "vectors of i32; allowed are f32, f16, u8 and i8");
    BuildParams params;
    params.k = 0;
    EXPECT_EQ(error_of(vectors, params), "BuildParams::k = 0, allowed are 1 to 1024");
}

TEST(BuildErrors, BadRowsAreNamed) {
    const auto with = [](float value, DType dtype, Metric metric) {
        Vectors vectors = random_vectors(2000, 5, dtype, true);
        for (int i = 0; i < 2000; ++i) vectors.set(i, 0, 1);  // no other zero vectors
        for (int c = 0; c < 5; ++c) vectors.set(1234, c, value);
        BuildParams params = params_of(3);
        params.metric = metric;
        return error_of(vectors, params);
    };
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
    for (DType dtype : {DType::f32, DType::f16}) {
        EXPECT_EQ(with(nan, dtype, Metric::L2), "vector 1234 holds NaN");
        EXPECT_EQ(with(inf, dtype, Metric::L1), "vector 1234 holds an infinite component");
        EXPECT_EQ(with(-inf, dtype, Metric::Cosine), "vector 1234 holds an infinite component");
        EXPECT_EQ(with(0, dtype, Metric::L2), "");
    }
    Vectors two = random_vectors(2000, 5, DType::f32);
    two.set(1900, 0, nan), two.set(700, 1, nan);
    EXPECT_EQ(error_of(two), "vector 700 holds NaN");
    EXPECT_EQ(with(1e19f, DType::f32, Metric::L2), "vector 1234 is too large: its squared norm must stay below 8.5e37");
    for (DType dtype : kDTypes)
        EXPECT_EQ(with(0, dtype, Metric::Cosine),
                  "vector 1234 is zero (or its norm is below 1e-19), which has no cosine");
    for (DType dtype : {DType::f32, DType::f16, DType::i8})
        EXPECT_EQ(with(-1, dtype, Metric::ChiSquare),
                  "vector 1234 holds a negative component, for which chi2 is not defined");
}

TEST(BuildErrors, NoCudaHere) {
    const Vectors vectors = random_vectors(10, 3, DType::f32);
    BuildParams params = params_of(3);
    params.device = Device::parse("cuda:0");
    EXPECT_THROW(build(vectors, params), Unavailable);
}

TEST(BuildErrors, InterruptEndsTheBuild) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    BuildParams params = params_of(10);
    params.iterations = 1000000;
    params.delta = 0;
    for (int threads : {1, 2}) {
        params.threads = threads;
        std::atomic<int> asked{0};
        Callbacks callbacks;
        callbacks.interrupt = [&] { return ++asked > 500; };
        EXPECT_THROW(build(vectors, params, callbacks), Interrupted);
        EXPECT_GE(asked, 500);
    }
}

TEST(BuildErrors, WhatCallbacksThrowArrives) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    Callbacks callbacks;
    callbacks.progress = [](const IterationStats&) { throw std::runtime_error("from progress"); };
    EXPECT_THROW(build(vectors, params_of(10), callbacks), std::runtime_error);
    callbacks.progress = nullptr;
    callbacks.interrupt = []() -> bool { throw std::logic_error("from interrupt"); };
    EXPECT_THROW(build(vectors, params_of(10), callbacks), std::logic_error);
}

TEST(BuildErrors, WorkMemoryEndsAndIsGivenBack) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    HeapResources heap;
    CountedResources measured(heap);
    const BuildResult result = build(vectors, params_of(10), {}, &measured);
    EXPECT_EQ(std::int64_t(measured.peak()), result.stats.peak_work_bytes);
    EXPECT_EQ(measured.held(), 0u);
    // Every smaller limit fails somewhere else, and each time all is given back.
    for (int tenths = 0; tenths < 10; ++tenths) {
        CountedResources limited(heap, measured.peak() / 10 * tenths + 1);
        EXPECT_THROW(build(vectors, params_of(10), {}, &limited), Error);
        EXPECT_EQ(limited.held(), 0u);
    }
}

TEST(Build, TwoAtOnce) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    const KnnGraph expected = build(vectors, params_of(10)).graph;
    KnnGraph graphs[2];
    std::thread other([&] { graphs[0] = build(vectors, params_of(10)).graph; });
    graphs[1] = build(vectors, params_of(10)).graph;
    other.join();
    EXPECT_TRUE(equal(graphs[0], expected));
    EXPECT_TRUE(equal(graphs[1], expected));
}

TEST(Refine, MakesAGraphOfAnyGraph) {
    const Vectors vectors = random_vectors(2000, 10, DType::f32);
    const std::vector<std::int32_t> objects{1, 10, 100, 500, 1000, 1999};
    const KnnGraph truth = exact_neighbors(vectors, objects.data(), std::int64_t(objects.size()), 10, Metric::L2);
    // Neighbours by number, wrong distances, some of them missing, self or twice.
    KnnGraph start(2000, 6, Metric::L2);
    for (int i = 0; i < 2000; ++i)
        for (int j = 0; j < 5; ++j) start.ids()[i * 6 + j] = (i + j * j) % 2000;
    const BuildResult result = refine(vectors, start, params_of(10));
    expect_valid_graph(result.graph, vectors);
    EXPECT_GE(test::recall_at(result.graph, truth, objects, 10), 0.95);

    // A good graph is a good start.
    const BuildResult again = refine(vectors, result.graph, params_of(10));
    EXPECT_LE(again.stats.iterations.back().phi, result.stats.iterations.back().phi * (1 + 1e-9));
}

TEST(Refine, RefusesWhatDoesNotFit) {
    const Vectors vectors = random_vectors(2000, 10, DType::f32);
    EXPECT_THROW(refine(vectors, KnnGraph(1999, 5, Metric::L2), params_of(10)), InvalidArgument);
    EXPECT_THROW(refine(vectors, KnnGraph(2000, 5, Metric::L1), params_of(10)), InvalidArgument);
    EXPECT_THROW(refine(vectors, KnnGraph(2000, 2000, Metric::L2), params_of(10)), InvalidArgument);
    KnnGraph graph(2000, 5, Metric::L2);
    graph.ids()[17] = 2000;
    EXPECT_THROW(refine(vectors, graph, params_of(10)), InvalidArgument);
}

TEST(ExactNeighbors, AgreeWithReference) {
    for (Metric metric : kMetrics) {
        const Vectors vectors = random_vectors(300, 7, DType::f32, metric == Metric::ChiSquare);
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

TEST(PairDistances, AgreeWithReference) {
    const Vectors vectors = random_vectors(50, 33, DType::i8);
    std::vector<std::int32_t> a, b;
    for (int i = 0; i < 3000; ++i) {
        a.push_back(i / 300);
        b.push_back(i % 51 - 1);
    }
    std::vector<float> out(a.size());
    for (Metric metric : {Metric::L2, Metric::Cosine}) {
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
    b[3] = 50;
    EXPECT_THROW(pair_distances(vectors, Metric::L2, a.data(), b.data(), 4, out.data()), InvalidArgument);
}

}  // namespace
}  // namespace gnnd
