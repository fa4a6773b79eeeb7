// SPDX-License-Identifier: MIT
// What a plan says of a build's choice and its time (detail/predict.h).
#include "gnnd/detail/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/resolve.h"

namespace gnnd {
namespace {

using detail::ComparedSet;
using detail::predict_on_cpu;
using detail::predict_on_gpu;

constexpr const char* kH200 = "NVIDIA H200";

ComparedSet floats16(std::int64_t n, std::int64_t d, int k) {
    return {.n = n, .row_bytes = (2 * d + 31) / 32 * 32, .bytes = false, .k = k, .list_size = std::max(k, 32)};
}
ComparedSet bytes(std::int64_t n, std::int64_t d, int k) {
    return {.n = n, .row_bytes = d, .bytes = true, .k = k, .list_size = std::max(k, 32)};
}

/// The figures of contrib/docs/performance.md and of the notebook.
TEST(Predict, IsNearWhatWasMeasuredOnTheH200) {
    struct Measured {
        ComparedSet set;
        double all_pairs;
    };
    for (const auto& [set, seconds] : std::vector<Measured>{{bytes(1000000, 128, 64), 0.231},
                                                            {bytes(1000000, 128, 10), 0.180},
                                                            {bytes(10000000, 128, 32), 16.15},
                                                            {floats16(516921, 256, 64), 0.187},
                                                            {floats16(516921, 256, 10), 0.143},
                                                            {floats16(200000, 768, 64), 0.132},
                                                            {floats16(200000, 768, 10), 0.096},
                                                            {floats16(100000, 50, 64), 0.0110},
                                                            {floats16(100000, 50, 10), 0.0068}})
        EXPECT_NEAR(predict_on_gpu(kH200, set).all_pairs, seconds, 0.25 * seconds) << set.n << " x " << set.row_bytes;
    ComparedSet sift = bytes(1000000, 128, 64);
    EXPECT_NEAR(predict_on_gpu(kH200, sift).iterations, 0.0466, 0.005);
    sift.samples = 64;
    EXPECT_NEAR(predict_on_gpu(kH200, sift).iterations, 0.0695, 0.005);
    EXPECT_NEAR(predict_on_gpu(kH200, bytes(1000000, 128, 10)).iterations, 0.0334, 0.005);
}

/// One thread, seconds of processor time.
TEST(Predict, IsNearWhatWasMeasuredOnTheCpu) {
    const auto floats32 = [](std::int64_t n, std::int64_t d, int k) {
        ComparedSet set = floats16(n, d, k);
        set.row_bytes = 4 * d;
        return set;
    };
    struct Measured {
        ComparedSet set;
        double all_pairs, iterations;
    };
    for (const auto& [set, all_pairs, iterations] : std::vector<Measured>{{bytes(50000, 32, 10), 2.79, 1.28},
                                                                          {bytes(50000, 32, 64), 3.94, 2.89},
                                                                          {bytes(50000, 128, 10), 4.53, 1.68},
                                                                          {bytes(50000, 128, 64), 5.88, 3.23},
                                                                          {floats32(50000, 32, 10), 2.98, 1.33},
                                                                          {floats32(50000, 32, 64), 4.34, 3.06},
                                                                          {floats32(50000, 128, 10), 5.63, 1.94},
                                                                          {floats32(50000, 128, 64), 7.09, 3.57}}) {
        const Prediction predicted = predict_on_cpu(1, set);
        EXPECT_NEAR(predicted.all_pairs, all_pairs, 0.25 * all_pairs) << set.row_bytes << ", k = " << set.k;
        EXPECT_NEAR(predicted.iterations, iterations, 0.25 * iterations) << set.row_bytes << ", k = " << set.k;
    }
}

TEST(Predict, GrowsWithObjectsDimensionsAndNeighbours) {
    for (const bool gpu : {true, false})
        for (const bool of_bytes : {true, false}) {
            SCOPED_TRACE(testing::Message() << (gpu ? "gpu" : "cpu") << (of_bytes ? ", bytes" : ", floats"));
            const auto predict = [&](std::int64_t n, std::int64_t row_bytes, int k) {
                const ComparedSet set{.n = n, .row_bytes = row_bytes, .bytes = of_bytes, .k = k, .list_size = 64};
                return gpu ? predict_on_gpu(kH200, set) : predict_on_cpu(2, set);
            };
            for (std::int64_t n = 5000; n < 100000000; n *= 2) {
                EXPECT_LT(predict(n, 128, 10).all_pairs, predict(2 * n, 128, 10).all_pairs);
                EXPECT_LT(predict(n, 128, 10).iterations, predict(2 * n, 128, 10).iterations);
            }
            for (std::int64_t row = 32; row < 4096; row += 32) {
                EXPECT_LT(predict(100000, row, 10).all_pairs, predict(100000, row + 32, 10).all_pairs);
                EXPECT_LT(predict(100000, row, 10).iterations, predict(100000, row + 32, 10).iterations);
            }
            EXPECT_LT(predict(100000, 128, 10).all_pairs, predict(100000, 128, 64).all_pairs);
        }
}

TEST(Predict, OfPartsTakesLonger) {
    ComparedSet set = bytes(1000000, 128, 10);
    const double whole = predict_on_gpu(kH200, set).all_pairs;
    set.parts = 3;
    EXPECT_GT(predict_on_gpu(kH200, set).all_pairs, whole);
}

TEST(Predict, ThreadsShareTheWork) {
    const ComparedSet set = bytes(50000, 128, 10);
    EXPECT_DOUBLE_EQ(predict_on_cpu(1, set).all_pairs, 4 * predict_on_cpu(4, set).all_pairs);
    EXPECT_EQ(predict_on_cpu(1, set).rates, "rates of an AVX-512 Xeon, 1 thread");
    EXPECT_EQ(predict_on_cpu(4, set).rates, "rates of an AVX-512 Xeon, 4 threads");
}

TEST(Predict, SaysWhoseRatesTheseAre) {
    const ComparedSet set = bytes(1000000, 128, 10);
    EXPECT_EQ(to_text(predict_on_gpu(kH200, set)),
              "all pairs about 0.19 s, three iterations about 0.035 s (rates of an H200)");
    const Prediction other = predict_on_gpu("NVIDIA L40S", set);
    EXPECT_EQ(other.all_pairs, predict_on_gpu(kH200, set).all_pairs);
    EXPECT_EQ(other.rates, "rates of an H200, there are none of NVIDIA L40S");
}

TEST(Predict, TextHasTwoDigitsThatCount) {
    EXPECT_EQ(to_text(Prediction{15.6, 0.00123, "rates"}),
              "all pairs about 16 s, three iterations about 0.0012 s (rates)");
    EXPECT_EQ(to_text(Prediction{1234.5, 1.26, "rates"}),
              "all pairs about 1234 s, three iterations about 1.3 s (rates)");
    EXPECT_EQ(to_text(Prediction{}), "not predicted");
}

TEST(Explain, SaysWhatDecides) {
    const auto why = [](const BuildParams& params, std::int64_t n, bool gpu, bool room) {
        const detail::Input input{{{nullptr, n, 16, DType::f32, 0}, {}}, {}};
        const Device device{gpu ? Device::Kind::cuda : Device::Kind::cpu, 0};
        return detail::explain(detail::resolve(params, input, device), params, gpu, room);
    };
    BuildParams params;
    const std::string small = "all pairs, which cost less with so few objects";
    const std::string measures = "the build measures after its first iteration and takes all pairs if that is cheaper";
    EXPECT_EQ(why(params, 1000, true, true), small);
    EXPECT_EQ(why(params, 5000, false, true), small);
    EXPECT_EQ(why(params, 100000, true, true), measures);
    EXPECT_EQ(why(params, 100000, true, false), "iterations, as the memory does not hold what all pairs take");
    EXPECT_EQ(why(params, 100000, false, true),
              "iterations until the recall is there; where they settle below it all pairs, if longer lists cost more");
    params.deterministic = true;
    EXPECT_EQ(why(params, 100000, true, true),
              "iterations until the recall is there; all pairs only where longer lists do not reach it");
    params.iterations = 3;
    EXPECT_EQ(why(params, 100000, true, true), "iterations within the limits that were set by hand, never all pairs");
    params.recall = 0;
    EXPECT_EQ(why(params, 100000, true, true), "iterations until few entries change, as no recall was asked for");
    params.recall = 1;
    EXPECT_EQ(why(params, 100000, true, true), "all pairs, as was asked for");
}

TEST(PlanMemory, PredictsTheTimeOnTheCpu) {
    BuildParams params;
    params.device = {Device::Kind::cpu, 0};
    params.threads = 1;
    const auto predicted = [&](DType dtype) { return plan_memory({nullptr, 50000, 128, dtype, 0}, params).predicted; };
    EXPECT_NEAR(predicted(DType::f32).all_pairs, 6.2, 0.6);
    EXPECT_EQ(predicted(DType::f16).all_pairs, predicted(DType::f32).all_pairs) << "they are compared as float32";
    EXPECT_LT(predicted(DType::u8).all_pairs, predicted(DType::f32).all_pairs);
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare}) {
        params.metric = metric;
        EXPECT_TRUE(predicted(DType::f32).rates.empty());
    }
}

}  // namespace
}  // namespace gnnd
