// SPDX-License-Identifier: MIT
// build() refuses what it cannot do, and ends before its time where it is told to.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "gnnd/builder.h"
#include "gnnd/device.h"
#include "gnnd/error.h"
#include "tests/cpu.h"
#include "tests/io_conditions.h"
#include "tests/reference.h"

namespace gnnd {
namespace {

using test::cpu_params;
using test::kDTypes;
using test::random_vectors;
using test::Vectors;

/// The error that building gives; empty if there is none.
std::string error_of(const VectorView& vectors, const BuildParams& params = cpu_params(3)) {
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
    EXPECT_EQ(error_of(view), "vectors of i32; allowed are f32, f16, u8, i8 and bf16");
    EXPECT_EQ(error_of(vectors, cpu_params(0)), "BuildParams::k = 0, allowed are 1 to 1024");
}

TEST(BuildErrors, PlansRefuseTheShapesThatBuildsRefuse) {
    const Vectors vectors = random_vectors(4, 3, DType::f32);
    const auto refused = [&](std::int64_t n, std::int64_t d, DType dtype) {
        VectorView view = vectors;
        view.n = n;
        view.d = d;
        view.dtype = dtype;
        const std::string message = error_of(view);
        return !message.empty() &&
               test::message_of<InvalidArgument>([&] { plan_memory(view, cpu_params(3)); }) == message;
    };
    for (const std::int64_t n : {-1LL, 0LL, 1LL, 1LL << 31}) EXPECT_TRUE(refused(n, 3, DType::f32)) << n;
    for (const std::int64_t d : {-1LL, 0LL, kMaxDim + 1LL}) EXPECT_TRUE(refused(4, d, DType::f32)) << d;
    EXPECT_TRUE(refused(4, 3, DType::i32));
    EXPECT_NO_THROW(plan_memory({nullptr, 4, 3, DType::f32, 0}, cpu_params(3)));
}

TEST(BuildErrors, BadRowsAreNamed) {
    const auto with = [](float value, DType dtype, Metric metric) {
        Vectors vectors = random_vectors(2000, 5, dtype, true);
        for (int i = 0; i < 2000; ++i) vectors.set(i, 0, 1);  // no other zero vectors
        for (int c = 0; c < 5; ++c) vectors.set(1234, c, value);
        BuildParams params = cpu_params(3);
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

TEST(BuildErrors, ADeviceThatIsNotThere) {
    const Vectors vectors = random_vectors(2000, 3, DType::f32);
    BuildParams params = cpu_params(3);
    for (const int index : {0, 4000}) {
        params.device = {Device::Kind::cuda, index};
        std::string why;
        if (device_usable(index, why))
            EXPECT_EQ(build(vectors, params).stats.device, params.device);
        else
            EXPECT_EQ(test::message_of<Unavailable>([&] { build(vectors, params); }),
                      "device " + params.device.name() + ": " + why);
    }
}

TEST(BuildErrors, InterruptEndsTheBuild) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    BuildParams params = cpu_params(10);
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
    EXPECT_THROW(build(vectors, cpu_params(10), callbacks), std::runtime_error);
    callbacks.progress = nullptr;
    callbacks.interrupt = []() -> bool { throw std::logic_error("from interrupt"); };
    EXPECT_THROW(build(vectors, cpu_params(10), callbacks), std::logic_error);
}

TEST(BuildErrors, WorkMemoryEndsAndIsGivenBack) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    HeapResources heap;
    CountedResources measured(heap);
    const BuildResult result = build(vectors, cpu_params(10), {}, &measured);
    EXPECT_EQ(std::int64_t(measured.peak()), result.stats.peak_work_bytes);
    EXPECT_EQ(measured.held(), 0u);
    // Every smaller limit fails somewhere else, and each time all is given back.
    for (int tenths = 0; tenths < 10; ++tenths) {
        CountedResources limited(heap, measured.peak() / 10 * tenths + 1);
        EXPECT_THROW(build(vectors, cpu_params(10), {}, &limited), Error);
        EXPECT_EQ(limited.held(), 0u);
    }
}

}  // namespace
}  // namespace gnnd
