// SPDX-License-Identifier: MIT
// A plan predicts a build's choice and its time (detail/predict.h).
#include "gnnd/detail/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/bound_sample.h"
#include "gnnd/detail/resolve.h"

namespace gnnd {
namespace {

using detail::ComparedSet;
using detail::predict_on_cpu;
using detail::predict_on_gpu;

using detail::GpuTraits;

const GpuTraits kH200{"NVIDIA H200", 9, 0, true, 132, 1.98e9, 4.9e12};

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
    for (auto [set, seconds] : std::vector<Measured>{{floats16(516921, 256, 64), 0.128},
                                                     {floats16(516921, 256, 10), 0.082},
                                                     {floats16(500000, 256, 64), 0.110},
                                                     {floats16(300000, 960, 10), 0.118}}) {
        set.codes = true;
        EXPECT_NEAR(predict_on_gpu(kH200, set).all_pairs, seconds, 0.25 * seconds) << set.n << " x " << set.row_bytes;
    }
    for (auto [set, seconds] : std::vector<Measured>{{floats16(1000000, 960, 64), 0.138},
                                                     {floats16(300000, 960, 10), 0.0229},
                                                     {floats16(200000, 768, 10), 0.0180}}) {
        set.list_bytes = 128;  // projections
        set.list_size = std::max(set.k, 48);
        EXPECT_NEAR(predict_on_gpu(kH200, set).iterations, seconds, 0.25 * seconds) << set.n << " x " << set.row_bytes;
    }
    for (auto [set, seconds] : std::vector<Measured>{{floats16(516921, 256, 64), 0.0457},
                                                     {floats16(1000000, 384, 64), 0.117},
                                                     {floats16(1000000, 384, 10), 0.0953}}) {
        set.list_bytes = set.row_bytes / 2;  // int8 codes
        set.list_size = std::max(set.k, 48);
        EXPECT_NEAR(predict_on_gpu(kH200, set).iterations, seconds, 0.1 * seconds) << set.n << " x " << set.row_bytes;
    }
    ComparedSet sift = bytes(1000000, 128, 64);
    EXPECT_NEAR(predict_on_gpu(kH200, sift).iterations, 0.0466, 0.005);
    sift.samples = 64;
    EXPECT_NEAR(predict_on_gpu(kH200, sift).iterations, 0.0695, 0.005);
    EXPECT_NEAR(predict_on_gpu(kH200, bytes(1000000, 128, 10)).iterations, 0.0334, 0.005);
}

/// All pairs with bounds from a sample, where that takes less; and sets of which it takes as long or longer.
TEST(Predict, TellsWhereBoundsComeFromASample) {
    struct Measured {
        ComparedSet set;
        double all_pairs;
    };
    for (auto [set, seconds] : std::vector<Measured>{{floats16(5000, 50, 64), 0.00058},
                                                     {floats16(20000, 50, 10), 0.00076},
                                                     {floats16(20000, 50, 64), 0.00122},
                                                     {floats16(100000, 50, 10), 0.0041},
                                                     {floats16(100000, 50, 64), 0.0062},
                                                     {floats16(200000, 32, 10), 0.0111},
                                                     {floats16(200000, 128, 64), 0.0198},
                                                     {floats16(400000, 128, 64), 0.0647},
                                                     {floats16(100000, 256, 10), 0.0069},
                                                     {floats16(50000, 768, 10), 0.0073},
                                                     {floats16(50000, 768, 64), 0.0106},
                                                     {bytes(50000, 128, 64), 0.0024},
                                                     {bytes(200000, 128, 64), 0.0150}}) {
        SCOPED_TRACE(testing::Message() << set.n << " x " << set.row_bytes << ", k = " << set.k);
        const double of_lists = predict_on_gpu(kH200, set).all_pairs;
        set.from_sample = true;
        const detail::GpuPrediction predicted = predict_on_gpu(kH200, set);
        EXPECT_TRUE(predicted.from_sample);
        EXPECT_LE(predicted.all_pairs, of_lists);
        EXPECT_NEAR(predicted.all_pairs, seconds, 0.25 * seconds);
    }
    for (ComparedSet set : {bytes(1000000, 128, 10), bytes(2000000, 128, 64), floats16(10000000, 50, 10)}) {
        set.from_sample = true;
        EXPECT_FALSE(predict_on_gpu(kH200, set).from_sample) << set.n << ", k = " << set.k;
    }
}

/// The rank that the sample's part of the nearest rarely reaches.
TEST(BoundSample, HoldsFewerOfTheNearestThanTheRankSays) {
    std::mt19937 random(1);
    for (const int k : {1, 5, 10, 16, 17, 32, 64, 100, 200, 512, 1024}) {
        const std::uint32_t stride = detail::sample_stride(k), rank = detail::sample_rank(k, stride);
        EXPECT_LE((k + 1) / double(stride), 20);
        constexpr int kTimes = 50000;
        std::binomial_distribution<int> held(k + 1, 1.0 / stride);
        int reached = 0, nearly = 0;
        for (int i = 0; i < kTimes; ++i) {
            const auto in_sample = std::uint32_t(held(random));
            reached += in_sample >= rank;
            nearly += in_sample + 1 >= rank;
        }
        EXPECT_LE(reached, kTimes * 0.006) << k;
        EXPECT_GT(nearly, kTimes * 0.003) << k << ": the least rank";
        EXPECT_LE(rank * stride, 64 + 3 * k) << k << ": not many more lie within the bound";
    }
}

/// One thread, seconds of processor time.
TEST(Predict, IsNearWhatWasMeasuredOnTheCpu) {
    const auto floats32 = [](std::int64_t n, std::int64_t d, int k) {
        ComparedSet set = floats16(n, d, k);
        set.row_bytes = 4 * d;
        return set;
    };
    struct Measured {
        cpu::Isa isa;
        ComparedSet set;
        double all_pairs, iterations;
    };
    constexpr cpu::Isa kVnni = cpu::Isa::avx512vnni, kAvx2 = cpu::Isa::avx2;
    for (const auto& [isa, set, all_pairs, iterations] :
         std::vector<Measured>{{kVnni, bytes(50000, 32, 10), 0.455, 0.643},
                               {kVnni, bytes(50000, 32, 64), 0.867, 1.352},
                               {kVnni, bytes(50000, 128, 10), 0.684, 0.774},
                               {kVnni, bytes(50000, 128, 64), 1.125, 1.390},
                               {kVnni, floats32(50000, 32, 10), 0.696, 0.714},
                               {kVnni, floats32(50000, 32, 64), 1.354, 1.458},
                               {kVnni, floats32(50000, 128, 10), 1.252, 1.174},
                               {kVnni, floats32(50000, 128, 64), 2.416, 2.064},
                               {kAvx2, bytes(50000, 32, 10), 1.102, 0.929},
                               {kAvx2, bytes(50000, 32, 64), 2.086, 2.089},
                               {kAvx2, bytes(50000, 128, 10), 2.241, 1.200},
                               {kAvx2, bytes(50000, 128, 64), 3.149, 2.245},
                               {kAvx2, floats32(50000, 32, 10), 1.472, 1.006},
                               {kAvx2, floats32(50000, 32, 64), 2.371, 2.203},
                               {kAvx2, floats32(50000, 128, 10), 4.194, 1.778},
                               {kAvx2, floats32(50000, 128, 64), 5.104, 3.048}}) {
        const Prediction predicted = predict_on_cpu(1, set, isa);
        EXPECT_NEAR(predicted.all_pairs, all_pairs, 0.25 * all_pairs)
            << predicted.rates << set.row_bytes << ' ' << set.k;
        EXPECT_NEAR(predicted.iterations, iterations, 0.25 * iterations) << predicted.rates << set.row_bytes << set.k;
    }
}

TEST(Predict, GrowsWithObjectsDimensionsAndNeighbours) {
    for (const bool gpu : {true, false})
        for (const bool of_bytes : {true, false}) {
            SCOPED_TRACE(testing::Message() << (gpu ? "gpu" : "cpu") << (of_bytes ? ", bytes" : ", floats"));
            const auto predict = [&](std::int64_t n, std::int64_t row_bytes, int k) {
                const ComparedSet set{.n = n, .row_bytes = row_bytes, .bytes = of_bytes, .k = k, .list_size = 64};
                return gpu ? Prediction(predict_on_gpu(kH200, set)) : predict_on_cpu(2, set);
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
    EXPECT_EQ(predict_on_cpu(1, set, cpu::Isa::avx512vnni).rates, "rates of an EPYC with AVX-512 VNNI, 1 thread");
    EXPECT_EQ(predict_on_cpu(4, set, cpu::Isa::avx2).rates, "rates of an EPYC with AVX2, 4 threads");
}

TEST(Predict, SaysWhoseRatesTheseAre) {
    const ComparedSet set = bytes(1000000, 128, 10);
    EXPECT_EQ(to_text(predict_on_gpu(kH200, set)),
              "all pairs about 0.19 s, three iterations about 0.035 s (rates of an H200)");
    GpuTraits other = kH200;
    other.name = "NVIDIA GH200 480GB";
    EXPECT_EQ(predict_on_gpu(other, set).rates, "rates derived from those of an H200 for NVIDIA GH200 480GB");
    EXPECT_DOUBLE_EQ(predict_on_gpu(other, set).all_pairs, predict_on_gpu(kH200, set).all_pairs) << "it tells the same";
    EXPECT_DOUBLE_EQ(predict_on_gpu(other, set).iterations, predict_on_gpu(kH200, set).iterations);
    // A part of one.
    other = kH200;
    other.name = "NVIDIA H200 MIG 1g.18gb";
    other.multiprocessors = 16;
    EXPECT_EQ(predict_on_gpu(other, set).rates, "rates derived from those of an H200 for NVIDIA H200 MIG 1g.18gb");
    EXPECT_GT(predict_on_gpu(other, set).all_pairs, 5 * predict_on_gpu(kH200, set).all_pairs);
}

/// A plain kernel of the older instruction, the one that other GPUs have, took these on an H200 (NOTEBOOK.md).
TEST(Predict, IsNearWhatWasMeasuredWithoutHoppersInstruction) {
    GpuTraits plain = kH200;
    plain.wgmma = false;
    struct Measured {
        ComparedSet set;
        double all_pairs;
    };
    for (const auto& [set, seconds] : std::vector<Measured>{{bytes(1000000, 128, 10), 0.257},
                                                            {bytes(1000000, 128, 64), 0.281},
                                                            {floats16(90000, 50, 10), 0.0029},
                                                            {floats16(1000000, 384, 10), 1.42},
                                                            {floats16(1000000, 384, 64), 1.48}}) {
        // It made no lists and kept no hits, which a sweep spends its start and the time of objects on.
        constexpr double kStart = 1.3e-3;
        ComparedSet two = set;
        two.n = 2;
        const double of_lists = kStart + double(set.n) / 2 * (predict_on_gpu(plain, two).all_pairs - kStart);
        EXPECT_NEAR(predict_on_gpu(plain, set).all_pairs - of_lists, seconds, 0.3 * seconds) << set.n;
    }
}

const GpuTraits kH100{"NVIDIA H100 PCIe", 9, 0, true, 114, 1.755e9, 2.04e12};
const GpuTraits kA100{"NVIDIA A100-SXM4-40GB", 8, 0, false, 108, 1.41e9, 1.555e12};
const GpuTraits kL40S{"NVIDIA L40S", 8, 9, false, 142, 2.52e9, 0.864e12};
const GpuTraits kRtx{"NVIDIA GeForce RTX 3060", 8, 6, false, 28, 1.777e9, 0.36e12};
const GpuTraits kB200{"NVIDIA B200", 10, 0, false, 148, 1.965e9, 8e12};

TEST(Predict, FollowsWhatOtherGpusTell) {
    const auto ratio = [](const GpuTraits& gpu, const ComparedSet& set) {
        return predict_on_gpu(gpu, set).all_pairs / predict_on_gpu(kH200, set).all_pairs;
    };
    // Products decide of so many rows: multiprocessors and clock, and which instruction there is.
    const ComparedSet many = bytes(10000000, 128, 10), floats = floats16(10000000, 128, 10);
    EXPECT_NEAR(ratio(kH100, many), 132 * 1.98 / (114 * 1.755), 0.05);
    EXPECT_NEAR(ratio(kA100, many), 132 * 1.98 / (108 * 1.41) * 2, 0.2);
    EXPECT_NEAR(ratio(kB200, many), 132 * 1.98 / (148 * 1.965) * 2, 0.2);
    // GeForce's tensor cores add float16 up in float32 at half their rate.
    GpuTraits renamed = kRtx;
    renamed.name = "NVIDIA A-series of the same size";
    EXPECT_GT(ratio(kRtx, floats), 1.4 * ratio(renamed, floats));
    EXPECT_EQ(ratio(kRtx, many), ratio(renamed, many));
    // And memory of few pairs and of iterations.
    EXPECT_GT(ratio(kL40S, bytes(3000, 128, 64)), 1);
    EXPECT_NEAR((predict_on_gpu(kL40S, many).iterations - 1.6e-3) / (predict_on_gpu(kH200, many).iterations - 1.6e-3),
                4.9 / 0.864, 1e-6);
    // A GPU that does not tell all of it.
    GpuTraits silent = kA100;
    silent.clock = silent.bytes_per_second = 0;
    const Prediction guessed = predict_on_gpu(silent, many);
    EXPECT_GT(guessed.all_pairs, predict_on_gpu(kH200, many).all_pairs);
    EXPECT_LT(guessed.all_pairs, predict_on_gpu(kA100, many).all_pairs) << "its clock is lower than an H200's";
    EXPECT_GT(guessed.iterations, predict_on_gpu(kH200, many).iterations);
}

/// All pairs of floats as codes take no longer than as float16, of long rows half as long at least, and no less than
/// bytes: and more with more components and neighbours.
TEST(Predict, OfCodesLiesBetweenFloatsAndBytes) {
    const auto coded = [](std::int64_t n, std::int64_t d, int k) {
        ComparedSet set = floats16(n, d, k);
        set.codes = true;
        return set;
    };
    for (const GpuTraits& gpu : {kH200, kH100, kA100, kL40S, kRtx, kB200})
        for (const std::int64_t n : {2000, 50000, 1000000})
            for (std::int64_t d = 96; d <= 8192; d += d / 32 * 32)
                for (const int k : {10, 64}) {
                    SCOPED_TRACE(testing::Message() << gpu.name << ", " << n << " x " << d << ", k = " << k);
                    const double codes = predict_on_gpu(gpu, coded(n, d, k)).all_pairs,
                                 floats = predict_on_gpu(gpu, floats16(n, d, k)).all_pairs;
                    EXPECT_LE(codes, floats);
                    EXPECT_GE(codes, floats / 4);
                    EXPECT_GE(codes, 0.75 * predict_on_gpu(gpu, bytes(n, d, k)).all_pairs);
                    EXPECT_LT(codes, predict_on_gpu(gpu, coded(n, 2 * d, k)).all_pairs);
                    EXPECT_LT(codes, predict_on_gpu(gpu, coded(n, d, 2 * k)).all_pairs);
                    EXPECT_DOUBLE_EQ(predict_on_gpu(gpu, coded(n, d, k)).iterations,
                                     predict_on_gpu(gpu, floats16(n, d, k)).iterations);
                }
    EXPECT_LT(predict_on_gpu(kH200, coded(1000000, 2048, 10)).all_pairs,
              0.55 * predict_on_gpu(kH200, floats16(1000000, 2048, 10)).all_pairs);
}

/// Lists of projections take less than those of the vectors, all the less the longer these are.
TEST(Predict, ListsOfProjectionsTakeLess) {
    double before = 1;
    for (std::int64_t d = 512; d <= 8192; d *= 2) {
        ComparedSet set = floats16(1000000, d, 32);
        const double rows = predict_on_gpu(kH200, set).iterations;
        set.list_bytes = 128;
        const double part = predict_on_gpu(kH200, set).iterations / rows;
        EXPECT_LT(part, before) << d;
        before = part;
    }
    EXPECT_LT(before, 0.3);
}

/// Where three iterations are the least all pairs may take a little longer.
TEST(Predict, TakesMoreForTheHighestRecall) {
    const auto less = [](double all_pairs, float recall) {
        BuildParams params;
        params.recall = recall;
        return detail::all_pairs_cost_less({.all_pairs = all_pairs, .iterations = 1, .rates = "any"}, 4000, params);
    };
    EXPECT_TRUE(less(1.1, 0.9986F));
    EXPECT_FALSE(less(1.2, 0.9986F));
    EXPECT_FALSE(less(1.1, 0.998F));
}

/// Small sets are compared, large ones are not, wherever.
TEST(Predict, DecidesSensiblyOnEveryGpu) {
    BuildParams params;
    params.k = 10;
    struct Kind {
        const char* name;
        bool bytes, codes;
    };
    for (const GpuTraits& gpu : {kH200, kH100, kA100, kL40S, kRtx, kB200})
        for (const Kind& kind :
             {Kind{"floats", false, false}, {"floats as codes", false, true}, {"bytes", true, false}}) {
            SCOPED_TRACE(gpu.name + ", " + kind.name);
            const auto less = [&](std::int64_t n) {
                ComparedSet set = kind.bytes ? bytes(n, 128, 10) : floats16(n, 128, 10);
                set.codes = kind.codes;
                set.list_size = 48;
                return detail::all_pairs_cost_less(predict_on_gpu(gpu, set), n, params);
            };
            EXPECT_TRUE(less(5000));
            EXPECT_FALSE(less(kind.codes ? 1000000 : 300000));
            for (std::int64_t n = 2500, last = true; n < 2000000; n *= 2) {
                EXPECT_LE(less(n), last) << "what is compared is not dearer with fewer";
                last = less(n);
            }
        }
    EXPECT_FALSE(detail::all_pairs_cost_less({}, 5000, params)) << "nothing is predicted";
}

/// Seconds of builds that were to have a recall, and of all pairs, k = 10 (NOTEBOOK.md, vectors of 12 dimensions in d).
TEST(Predict, ChoosesWhatTookLess) {
    struct Measured {
        std::int64_t n, d;
        double builds[3], all_pairs;
    };
    for (const auto& [n, d, builds, all_pairs] :
         std::vector<Measured>{{20000, 50, {0.0023, 0.0023, 0.0031}, 0.0021},
                               {100000, 50, {0.0049, 0.0060, 0.0080}, 0.0065},
                               {500000, 50, {0.0217, 0.0216, 0.0373}, 0.0622},
                               {20000, 768, {0.0057, 0.0059, 0.0110}, 0.0055},
                               {100000, 768, {0.0170, 0.0218, 0.0457}, 0.0326},
                               {500000, 768, {0.0971, 0.0973, 0.2329}, 0.4201}}) {
        constexpr float kRecalls[] = {0.95F, 0.99F, 0.999F};
        for (int i = 0; i < 3; ++i) {
            BuildParams params;
            params.k = 10;
            params.recall = kRecalls[i];
            const detail::Input input{{{nullptr, n, d, DType::f32, 0}, {}}, {}};
            const Choices choices = detail::resolve(params, input, {Device::Kind::cuda, 0});
            ComparedSet set = floats16(n, d, params.k);
            set.list_size = choices.list_size;
            set.samples = choices.samples;
            EXPECT_EQ(detail::all_pairs_cost_less(predict_on_gpu(kH200, set), n, params), all_pairs < builds[i])
                << n << " x " << d << ", recall " << kRecalls[i];
        }
    }
}

/// 8,192 objects that lack nothing show 0.999, and 0.9995 only of few more than they are; a build has to go on then.
TEST(Predict, CountsTheWayOfAListThatSettles) {
    const Prediction prediction{.all_pairs = 1.2, .iterations = 1, .rates = "any"};
    const auto less = [&](std::int64_t n, float recall) {
        BuildParams params;
        params.recall = recall;
        return detail::all_pairs_cost_less(prediction, n, params);
    };
    EXPECT_FALSE(less(200000, 0.999F));
    EXPECT_TRUE(less(200000, 0.9995F));
    EXPECT_FALSE(less(4000, 0.9999F)) << "all are measured";
    EXPECT_FALSE(less(2000000, 0.9995F)) << "more objects are measured";
    EXPECT_TRUE(less(2000000, 0.9999F));
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

/// Costs of an object decide on the CPU, and those of bytes are the same on all processors, as the graphs are.
TEST(Predict, TellsWhatAnObjectCostsOnTheCpu) {
    const auto crossing = [](std::int64_t d, bool of_bytes, cpu::Isa isa,
                             Metric metric = Metric::L2) {  // with two iterations left
        std::int64_t n = 1000;
        for (;; n += 500) {
            const detail::ObjectCosts costs = detail::object_costs(
                {.n = n, .row_bytes = d * (of_bytes ? 1 : 4), .bytes = of_bytes, .k = 10, .list_size = 32}, metric,
                isa);
            if (costs.all_pairs > 2 * costs.round) return n;
        }
    };
    constexpr cpu::Isa kAll[] = {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512, cpu::Isa::avx512vnni};
    for (const cpu::Isa isa : kAll) {
        SCOPED_TRACE(cpu::name_of(isa));
        EXPECT_EQ(crossing(128, true, isa), crossing(128, true, cpu::Isa::baseline));
        for (const bool of_bytes : {true, false}) {
            EXPECT_GE(crossing(16, of_bytes, isa), crossing(128, of_bytes, isa));
            EXPECT_GE(crossing(128, of_bytes, isa), 4000);
            EXPECT_LE(crossing(16, of_bytes, isa), 40000);
        }
    }
    for (const cpu::Isa isa : kAll)
        for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare})
            EXPECT_EQ(crossing(128, true, isa, metric), crossing(128, false, isa, metric)) << "floats in either case";
    EXPECT_LT(crossing(128, false, cpu::Isa::avx512vnni, Metric::L1), crossing(128, false, cpu::Isa::avx512vnni));
    EXPECT_GT(crossing(128, false, cpu::Isa::avx512vnni), 1.5 * crossing(128, false, cpu::Isa::avx2));
}

TEST(PlanMemory, PredictsTheTimeOnTheCpu) {
    BuildParams params;
    params.device = {Device::Kind::cpu, 0};
    params.threads = 1;
    const auto predicted = [&](DType dtype) { return plan_memory({nullptr, 50000, 128, dtype, 0}, params).predicted; };
    const ComparedSet floats{.n = 50000, .row_bytes = 512, .bytes = false, .k = params.k, .list_size = 32};
    EXPECT_EQ(predicted(DType::f32).all_pairs, predict_on_cpu(1, floats).all_pairs) << "of the CPU at hand";
    EXPECT_EQ(predicted(DType::f16).all_pairs, predicted(DType::f32).all_pairs) << "they are compared as float32";
    EXPECT_LT(predicted(DType::u8).all_pairs, predicted(DType::f32).all_pairs);
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare}) {
        params.metric = metric;
        EXPECT_TRUE(predicted(DType::f32).rates.empty());
    }
}

}  // namespace
}  // namespace gnnd
