// SPDX-License-Identifier: MIT
// build() and refine() on a GPU: hard and bad input, what is told and when it ends, and devices that are not there. All
// but the last is skipped without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "tests/converted.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/scales.h"
#include "tests/signed_zeros.h"

namespace gnnd {
namespace {

using test::converging;
using test::converted;
using test::expect_valid_graph;
using test::gpu_params;
using test::random_vectors;
using test::Truth;
using test::Vectors;

TEST(Cuda, FloatsThatAreSmallIntegersAreTreatedAsSuch) {
    SKIP_WITHOUT_GPU();
    for (const DType dtype : {DType::u8, DType::i8})
        for (const std::int64_t d : {3, 128, 200})
            for (const Metric metric : {Metric::L2, Metric::InnerProduct}) {
                SCOPED_TRACE(std::string(name_of(dtype)) + " d " + std::to_string(d));
                const Vectors integers = random_vectors(3000, d, dtype);
                BuildParams params = gpu_params(20, metric);
                params.deterministic = true;
                const KnnGraph expected = build(integers, params).graph;
                for (const DType as : {DType::f32, DType::f16, DType::bf16}) {
                    const KnnGraph graph = build(converted(integers, as), params).graph;
                    EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 3000 * 20, expected.ids()));
                    EXPECT_TRUE(std::equal(graph.distances(), graph.distances() + 3000 * 20, expected.distances()));
                }
            }
}

TEST(Cuda, SignsOfZerosDoNotCount) {
    SKIP_WITHOUT_GPU();
    for (const Metric metric : kMetrics)
        for (const DType dtype : {DType::f32, DType::bf16}) {
            SCOPED_TRACE(std::string(name_of(metric)) + " " + std::string(name_of(dtype)));
            test::expect_signs_of_zeros_do_not_count(dtype, gpu_params(10, metric));
        }
}

TEST(Cuda, OneOddComponentMakesFloatsOfThem) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = converted(random_vectors(3000, 40, DType::u8), DType::f32);
    for (const float odd : {0.5f, -1.0f, 256.0f, 1e10f, -0.0f}) {
        SCOPED_TRACE(odd);
        vectors.set(2999, 39, odd);
        expect_valid_graph(build(vectors, gpu_params(20)).graph, vectors);
    }
    vectors.set(2999, 39, NAN);
    EXPECT_THROW(build(vectors, gpu_params(20)), InvalidArgument);
    vectors.set(2999, 39, INFINITY);
    EXPECT_THROW(build(vectors, gpu_params(20)), InvalidArgument);
}

TEST(Cuda, BadRowsAreNamed) {
    SKIP_WITHOUT_GPU();
    const auto message = [](const Vectors& vectors, Metric metric) {
        try {
            build(vectors, gpu_params(10, metric));
        } catch (const InvalidArgument& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    Vectors vectors = random_vectors(3000, 20, DType::f32);
    vectors.set(2500, 3, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(message(vectors, Metric::L2), "vector 2500 holds NaN");
    vectors.set(1200, 19, std::numeric_limits<float>::infinity());
    EXPECT_EQ(message(vectors, Metric::L2), "vector 1200 holds an infinite component");
    Vectors zero = random_vectors(3000, 20, DType::u8);
    for (int c = 0; c < 20; ++c) zero.set(77, c, 0);
    EXPECT_NE(message(zero, Metric::Cosine).find("vector 77 is zero"), std::string::npos);
    Vectors negative = random_vectors(3000, 20, DType::f32, true);
    negative.set(5, 5, -1);
    EXPECT_NE(message(negative, Metric::ChiSquare).find("vector 5 holds a negative"), std::string::npos);
}

TEST(Cuda, GraphsAreAsGoodAtBothEndsOfFloats) {
    SKIP_WITHOUT_GPU();
    for (const Codes codes : {Codes::none, Codes::automatic}) {
        SCOPED_TRACE(name_of(codes));
        BuildParams params = converging(gpu_params(20));
        params.codes = codes;
        test::expect_good_builds_at_scales(params);
    }
}

TEST(Cuda, VectorsWhoseDistancesWouldOverflowAreRefused) {
    SKIP_WITHOUT_GPU();
    test::expect_large_rows_are_named(converging(gpu_params(5)));
}

/// Norms whose sum over the sample of rows is past float's range.
TEST(Cuda, CosineOfLongVectors) {
    SKIP_WITHOUT_GPU();
    const Vectors direction = random_vectors(3000, 32, DType::f32);
    const float* x = static_cast<const float*>(direction.view().data);
    Vectors vectors(3000, 32, DType::f32);
    for (std::int64_t i = 0; i < 3000; ++i)
        for (std::int64_t c = 0; c < 32; ++c) vectors.set(i, c, x[i * 32 + c] * 5e17f);
    const BuildResult result = build(vectors, gpu_params(10, Metric::Cosine));
    EXPECT_GE(Truth(vectors, Metric::Cosine).recall_of(result.graph), 0.98);
}

/// Numbers that go with what objects are: even ones here, odd ones there.
TEST(Cuda, SegmentsDoNotFollowTheNumbers) {
    SKIP_WITHOUT_GPU();
    SKIP_WITHOUT_UPDATE(Update::selective);
    Vectors vectors = random_vectors(5000, 20, DType::f32);
    for (std::int64_t i = 0; i < 5000; i += 2) vectors.set(i, 0, 100);
    std::vector<std::int32_t> objects(300);
    for (int i = 0; i < 300; ++i) objects[i] = i * 16 + i % 2;
    const Truth truth(vectors, Metric::L2, objects, 64);
    BuildParams params = converging(gpu_params(64));
    params.update = Update::selective;
    EXPECT_GE(truth.recall_of(build(vectors, params).graph), 0.9);
}

TEST(Cuda, UpdatesThatAreNotCompiledAreRefused) {
    SKIP_WITHOUT_GPU();
    if (cuda::has_variants()) GTEST_SKIP() << "all of them are compiled";
    const Vectors vectors = random_vectors(5000, 20, DType::f32);
    for (const Update update : {Update::selective, Update::all}) {
        BuildParams params = gpu_params(10);
        params.update = update;
        const std::string message = "update '" + std::string(name_of(update)) +
                                    "' is not compiled for GPUs here (GNND_CUDA_VARIANTS), update 'auto' is";
        EXPECT_EQ(test::message_of<Unavailable>([&] { build(vectors, params); }), message);
        EXPECT_EQ(test::message_of<Unavailable>([&] { plan_memory(vectors, params); }), message);
    }
}

TEST(Cuda, InterruptEndsTheBuild) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(5000, 64, DType::f32);
    Callbacks callbacks;
    int asked = 0;
    callbacks.interrupt = [&] { return ++asked > 2; };
    const BuildParams params = converging(gpu_params(10));
    EXPECT_THROW(build(vectors, params, callbacks), Interrupted);
    asked = 0;
    EXPECT_THROW(build_exact(vectors, params, callbacks), Interrupted);
    callbacks.interrupt = nullptr;
    callbacks.progress = [](const IterationStats&) { throw std::runtime_error("stop"); };
    EXPECT_THROW(build(vectors, params, callbacks), std::runtime_error);
    expect_valid_graph(build(vectors, params).graph, vectors);
}

TEST(Cuda, StatsTellEveryIteration) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 64, DType::f32);
    std::vector<IterationStats> seen;
    Callbacks callbacks;
    callbacks.progress = [&](const IterationStats& stats) { seen.push_back(stats); };
    const BuildResult result = build(vectors, converging(gpu_params(32)), callbacks);
    ASSERT_EQ(seen.size(), result.stats.iterations.size());
    ASSERT_GE(seen.size(), 3u);
    double phi = 0;
    for (std::int64_t i = 0; i < 20000 * 32; ++i) phi += result.graph.distances()[i];
    EXPECT_NEAR(seen.back().phi / phi, 1, 1e-3);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].iteration, int(i));
        EXPECT_GT(seen[i].seconds, 0);
        if (i == 0) continue;
        EXPECT_LE(seen[i].accepted, seen[i].offered);
        EXPECT_GT(seen[i].distances, 0);
        EXPECT_GT(seen[i].accepted, 0);
    }
    EXPECT_LT(seen.back().changed, 0.001 * 20000 * 32);
}

TEST(Cuda, HardInput) {
    SKIP_WITHOUT_GPU();
    Vectors equal(2000, 16, DType::f32), few(2000, 16, DType::u8);
    for (int i = 0; i < 2000; ++i)
        for (int c = 0; c < 16; ++c) {
            equal.set(i, c, 1);
            few.set(i, c, float(i % 5));
        }
    expect_valid_graph(build(equal, gpu_params(32)).graph, equal);
    expect_valid_graph(build(few, gpu_params(32)).graph, few);
    Vectors far = random_vectors(2000, 16, DType::f32);
    for (int i = 0; i < 2000; ++i)
        for (int c = 0; c < 16; ++c) far.set(i, c, 1e6f + float((i * 31 + c * 17) % 997));
    expect_valid_graph(build(far, gpu_params(32)).graph, far);
}

TEST(CudaDevices, OneThatIsNotThereIsAnError) {
    BuildParams params = gpu_params(10);
    params.device.index = 4000;
    EXPECT_THROW(build(random_vectors(3000, 20, DType::f32), params), Unavailable);
}

TEST(CudaDevices, AutomaticFallsBackAndSaysWhy) {
    BuildParams params = gpu_params(10);
    params.device.kind = Device::Kind::automatic;
    const BuildStats stats = build(random_vectors(3000, 20, DType::f32), params).stats;
    EXPECT_EQ(stats.device_reason.empty(), cuda::device_count() > 0);
    EXPECT_EQ(stats.device.kind == Device::Kind::cuda, cuda::device_count() > 0);
}

}  // namespace
}  // namespace gnnd
