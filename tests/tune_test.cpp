// SPDX-License-Identifier: MIT
// tune(): what it says of settings is true, what was set by hand stays, and it ends when it is told to.
#include "gnnd/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gnnd/detail/tune_steps.h"
#include "gnnd/error.h"
#include "gnnd/resources.h"
#include "tests/cpu.h"
#include "tests/hard_sets.h"

namespace gnnd {
namespace {

using test::Truth;
using test::Vectors;

BuildParams tuned_for(double recall, int k = 10) {
    BuildParams params = test::cpu_params(k);
    params.recall = float(recall);
    return params;
}

/// A limit on the iterations that is none keeps small sets from being compared pair by pair.
BuildParams in_lists(double recall, int k = 10) {
    BuildParams params = tuned_for(recall, k);
    params.iterations = 39;
    return params;
}

TuneParams few(int settings = 8) {
    TuneParams how;
    how.settings = settings;
    how.objects = 400;
    return how;
}

Vectors hard(std::int64_t n, const std::string& name = "gauss32") {
    for (const test::HardSet& set : test::hard_sets())
        if (set.name == name) return test::vectors_of(set, n, DType::f32);
    throw std::invalid_argument(name);
}

std::string error_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(Tune, SaysOfEachSettingWhatItsBuildDoes) {
    const Vectors vectors = hard(5000);
    const TuneResult result = tune(vectors, in_lists(0.97), few());
    EXPECT_EQ(result.n, 5000);
    EXPECT_EQ(result.large_rows, 5000);
    EXPECT_EQ(result.small_rows, 1250);
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.device, test::kCpu);
    const Truth truth(vectors, Metric::L2);
    int measured = 0;
    for (const TuneRecord& record : result.records) {
        if (record.params.recall == 0) {
            EXPECT_EQ(record.small.rows, 1250);
        }
        if (record.large.rows == 0) continue;
        ++measured;
        const BuildResult built = build(vectors, record.params);
        EXPECT_EQ(built.stats.stop, record.large.stop);
        EXPECT_EQ(built.stats.iterations.back().iteration, record.large.iterations);
        const double recall = truth.recall_of(built.graph);
        EXPECT_NEAR(record.large.recall.value, recall, 0.01);
        EXPECT_LE(record.large.recall.low, record.large.recall.value);
        EXPECT_GT(record.large.seconds, 0);
        EXPECT_EQ(record.predicted_recall, record.large.recall.value) << "all rows were measured";
        EXPECT_EQ(record.predicted_seconds, record.large.seconds);
    }
    EXPECT_GE(measured, 3);
    const BuildParams& standard = result.records[0].params;
    const Choices choices = plan_memory(vectors, in_lists(0.97)).choices;
    EXPECT_EQ(standard.samples, choices.samples);
    EXPECT_EQ(standard.list_size, choices.list_size);
    EXPECT_EQ(standard.trees, choices.trees);
    EXPECT_EQ(standard.recall, 0);
}

TEST(Tune, TheChosenParametersReachTheRecall) {
    for (const char* name : {"gauss32", "near64", "plane2"}) {
        SCOPED_TRACE(name);
        const Vectors vectors = hard(2500, name);
        const TuneResult result = tune(vectors, in_lists(0.97), few());
        ASSERT_GE(result.chosen, 0);
        EXPECT_TRUE(result.reaches);
        EXPECT_EQ(result.params.recall, 0.97f);
        const BuildStats stats = build(vectors, result.params).stats;
        EXPECT_EQ(stats.stop, StopReason::recall);
        EXPECT_EQ(stats.choices.samples, result.records[std::size_t(result.chosen)].params.samples);
    }
}

/// Lists of the default's length converge far below 0.99 there, and longer ones do not.
TEST(Tune, FindsMoreThanTheDefaultOnAHardSet) {
    const TuneResult result = tune(hard(4000, "gauss64"), in_lists(0.99, 32), few(14));
    const TuneRun& standard = result.records[0].large;
    EXPECT_LT(standard.recall.value, 0.98);
    const auto best = std::max_element(result.records.begin(), result.records.end(), [](const auto& a, const auto& b) {
        return a.large.recall.value < b.large.recall.value;
    });
    EXPECT_GT(best->large.recall.value, standard.recall.value + 0.01);
    EXPECT_GT(best->params.list_size, 32);
    EXPECT_TRUE(result.reaches);
    EXPECT_GT(result.params.samples, 22) << "not the default's";
}

TEST(Tune, AndLessOnAnEasyOne) {
    const TuneResult result = tune(test::random_vectors(6000, 16, DType::f32), in_lists(0.9), few(24));
    EXPECT_TRUE(std::any_of(result.records.begin(), result.records.end(), [&](const TuneRecord& record) {
        return record.large.rows != 0 && record.params.recall == 0 && record.large.recall.value >= 0.9 &&
               record.large.distances < 0.7 * double(result.records[0].large.distances);
    }));
}

TEST(Tune, TheFrontIsThatOfTimeAndRecall) {
    const TuneResult result = tune(hard(4000), in_lists(0.97), few(12));
    int front = 0;
    for (const TuneRecord& record : result.records) {
        if (record.large.rows == 0) {
            EXPECT_FALSE(record.front);
            continue;
        }
        front += record.front;
        const bool beaten = std::any_of(result.records.begin(), result.records.end(), [&](const TuneRecord& other) {
            return other.large.rows != 0 && other.large.seconds < record.large.seconds &&
                   other.large.recall.value >= record.large.recall.value;
        });
        EXPECT_EQ(record.front, !beaten);
    }
    EXPECT_GE(front, 1);
}

TEST(Tune, TriesTheSameWithTheSameRecallEveryTime) {
    const Vectors vectors = hard(2500);
    BuildParams params = tuned_for(0.97);
    params.iterations = 12;
    TuneParams how = few(10);
    how.rows = 2000;
    params.threads = 1;
    const TuneResult first = tune(vectors, params, how);
    params.threads = 3;
    const TuneResult again = tune(vectors, params, how);
    EXPECT_EQ(first.miss_exponent, again.miss_exponent);
    int same = 0;
    for (std::size_t i = 0; i < first.records.size() && first.records[i].params.recall == 0; ++i, ++same) {
        ASSERT_LT(i, again.records.size());
        const TuneRecord &a = first.records[i], &b = again.records[i];
        EXPECT_TRUE(detail::same_setting(a.params, b.params)) << i;
        EXPECT_EQ(a.small.recall.value, b.small.recall.value);
        EXPECT_EQ(a.small.distances, b.small.distances);
        EXPECT_EQ(a.large.recall.value, b.large.recall.value);
    }
    EXPECT_EQ(same, 10);
    params.seed = 77;
    EXPECT_NE(tune(vectors, params, how).records[0].small.distances, first.records[0].small.distances);
}

TEST(Tune, PredictsMoreTimeAndLessRecallForMoreRows) {
    const Vectors vectors = hard(8000, "gauss64");
    TuneParams how = few(4);
    how.rows = 4100;
    const TuneResult result = tune(vectors, in_lists(0.97), how);
    EXPECT_EQ(result.large_rows, 4100);
    EXPECT_GT(result.miss_exponent, 0.3);
    double off = 0;
    int compared = 0;
    for (const TuneRecord& record : result.records) {
        if (record.large.rows == 0 || record.params.recall != 0) continue;
        EXPECT_NEAR(record.predicted_seconds, record.large.seconds * std::pow(8000. / 4100, result.time_exponent),
                    1e-9);
        EXPECT_LE(record.predicted_recall, record.large.recall.value);
        const double truth = Truth(vectors, Metric::L2).recall_of(build(vectors, record.params).graph);
        off += truth - record.predicted_recall;
        ++compared;
    }
    ASSERT_GT(compared, 2);
    EXPECT_NEAR(off / compared, 0, 0.05);
}

TEST(Tune, WhatIsSetByHandStays) {
    const Vectors vectors = test::random_vectors(1600, 12, DType::f32);
    const auto expect = [&](auto set, auto holds) {
        BuildParams params = tuned_for(0.95);
        set(params);
        TuneParams how = few(6);
        how.inits = params.init == Init::projection;
        const TuneResult result = tune(vectors, params, how);
        EXPECT_GT(result.records.size(), 3u);
        for (const TuneRecord& record : result.records) {
            EXPECT_NE(record.params.recall, 1) << "all pairs are no limit's";
            EXPECT_TRUE(holds(record.params));
        }
        EXPECT_TRUE(holds(result.params));
    };
    expect([](auto& p) { p.samples = 9; }, [](const auto& p) { return p.samples == 9; });
    expect([](auto& p) { p.list_size = 37; }, [](const auto& p) { return p.list_size == 37 && p.samples <= 37; });
    expect([](auto& p) { p.trees = 2; }, [](const auto& p) { return p.init == Init::random || p.trees == 2; });
    expect([](auto& p) { p.iterations = 3; }, [](const auto& p) { return p.iterations <= 3 && p.iterations > 0; });
    expect(
        [](auto& p) {
            p.init = Init::random;
            p.trees = 4;
        },
        [](const auto& p) { return p.init == Init::random; });
    expect(
        [](auto& p) {
            p.samples = 33;
            p.list_size = 40;
            p.metric = Metric::InnerProduct;
        },
        [](const auto& p) { return p.samples == 33 && p.list_size == 40 && p.metric == Metric::InnerProduct; });
}

TEST(Tune, OfNoIterationsIsThatOfTheStart) {
    BuildParams params = tuned_for(0.95);
    params.iterations = 0;
    for (const TuneRecord& record : tune(test::random_vectors(3000, 12, DType::f32), params, few()).records)
        EXPECT_EQ(record.params.iterations, 0);
}

TEST(Tune, SmallSetsAreComparedPairByPair) {
    for (const int n : {2, 3, 5, 50, 900}) {
        SCOPED_TRACE(n);
        int calls = 0;
        TuneCallbacks callbacks;
        callbacks.progress = [&](const TuneRecord&, const TuneRun& run) { calls += run.rows == n; };
        const TuneResult result = tune(test::random_vectors(n, 4, DType::f32), tuned_for(0.99, 20), few(), callbacks);
        ASSERT_EQ(result.records.size(), 1u);
        EXPECT_EQ(calls, 1);
        EXPECT_EQ(result.records[0].large.stop, StopReason::exact);
        EXPECT_EQ(result.records[0].large.recall.value, 1);
        EXPECT_EQ(result.records[0].large.recall.at, std::min(10, n - 1));
        EXPECT_EQ(result.chosen, 0);
        EXPECT_TRUE(result.reaches);
        EXPECT_TRUE(result.records[0].front);
    }
    EXPECT_NE(error_of([] { tune(test::random_vectors(1, 4, DType::f32), tuned_for(0.99)); }).find("1 vector"),
              std::string::npos);
}

TEST(Tune, PassesOverWhatTheMemoryDoesNotHold) {
    const Vectors vectors = hard(3000, "gauss64");
    HeapResources heap;
    CountedResources all(heap);
    const BuildParams params = in_lists(0.99);
    std::size_t of_default = 0;
    int longest = 0;
    TuneCallbacks callbacks;
    callbacks.progress = [&](const TuneRecord& record, const TuneRun& run) {
        if (run.rows == 3000 && of_default == 0) of_default = all.peak();
        if (record.params.recall == 0) longest = std::max(longest, record.params.list_size);
    };
    tune(vectors, params, few(), callbacks, &all);
    EXPECT_GT(longest, 32);
    EXPECT_GT(all.peak(), of_default * 5 / 4);
    CountedResources limited(heap, of_default * 21 / 20);
    const TuneResult result = tune(vectors, params, few(), {}, &limited);
    EXPECT_GT(result.records.size(), 4u);
    for (const TuneRecord& record : result.records) {
        EXPECT_FALSE(record.params.list_size > 40 && record.large.rows != 0 && record.params.recall == 0);
    }
    EXPECT_EQ(limited.held(), 0u);
    CountedResources least(heap, of_default / 20);
    EXPECT_THROW(tune(vectors, params, few(), {}, &least), OutOfWorkMemory);
}

TEST(Tune, EqualVectorsHaveAllTheirNeighbours) {
    const Vectors vectors(3000, 8, DType::u8);
    const TuneResult result = tune(vectors, in_lists(0.99), few());
    for (const TuneRecord& record : result.records) EXPECT_EQ(record.run().recall.value, 1);
    EXPECT_EQ(result.miss_exponent, 0);
    EXPECT_TRUE(result.reaches);
}

TEST(Tune, NamesTheRowOfTheBaseThatIsBad) {
    Vectors vectors = test::random_vectors(3000, 4, DType::f32);
    for (int i = 1500; i < 3000; ++i) vectors.set(i, 2, std::numeric_limits<float>::quiet_NaN());
    TuneParams how = few();
    how.rows = 2000;
    const std::string message = error_of([&] { tune(vectors, in_lists(0.9), how); });
    int row = 0;
    ASSERT_EQ(std::sscanf(message.c_str(), "vector %d holds NaN", &row), 1) << message;
    EXPECT_GE(row, 1500);
    for (int i = 1501; i < 3000; ++i) vectors.set(i, 2, 0);
    EXPECT_EQ(error_of([&] { tune(vectors, in_lists(0.9), few()); }), "vector 1500 holds NaN");
}

TEST(Tune, EndsWhenItIsInterrupted) {
    const Vectors vectors = test::random_vectors(3000, 12, DType::f32);
    for (const int after : {0, 1, 40}) {
        int asked = 0;
        TuneCallbacks callbacks;
        callbacks.interrupt = [&] { return asked++ >= after; };
        EXPECT_THROW(tune(vectors, in_lists(0.9), few(), callbacks), Interrupted) << after;
        EXPECT_EQ(asked, after + 1);
    }
    TuneCallbacks callbacks;
    bool done = false;
    callbacks.progress = [&](const TuneRecord&, const TuneRun& run) { done = run.rows == 3000; };
    callbacks.interrupt = [&] { return done; };
    EXPECT_THROW(tune(vectors, in_lists(0.9), few(), callbacks), Interrupted) << "of the larger sample";
}

TEST(Tune, EndsInTimeWithTheBestSoFar) {
    const Vectors vectors = test::random_vectors(20000, 32, DType::f32);
    TuneParams how;
    how.settings = 10000;
    how.objects = 200;
    how.rows = 10000;
    int builds = 0;
    TuneCallbacks callbacks;
    callbacks.progress = [&](const TuneRecord&, const TuneRun&) { ++builds; };
    // Long enough for some builds and too short for thousands, however fast the machine is.
    for (how.seconds = 0.2; how.seconds < 100; how.seconds *= 2) {
        builds = 0;
        const auto start = std::chrono::steady_clock::now();
        try {
            const TuneResult result = tune(vectors, in_lists(0.9), how, callbacks);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            EXPECT_FALSE(result.complete);
            EXPECT_GE(result.chosen, 0);
            EXPECT_GE(builds, int(result.records.size()));
            EXPECT_NEAR(result.seconds, took.count(), 0.1 + 0.1 * took.count());
            EXPECT_LT(took.count(), how.seconds + 5);
            return;
        } catch (const InvalidArgument&) {
            EXPECT_EQ(builds, 0);
        }
    }
    FAIL() << "no build in 100 s";
}

TEST(Tune, TooLittleTimeForABuildIsAnError) {
    TuneParams how;
    how.seconds = 1e-9;
    const std::string message = error_of([&] { tune(test::random_vectors(3000, 12, DType::f32), in_lists(0.9), how); });
    EXPECT_EQ(message.find("TuneParams::seconds = "), 0u) << message;
    EXPECT_NE(message.find("not one build of 1025 rows"), std::string::npos) << message;
    EXPECT_EQ(error_of([&] {
                  tune(test::random_vectors(100, 4, DType::f32), tuned_for(0.9), how);
              }).find("TuneParams::seconds = "),
              0u);
}

TEST(Tune, WithoutARecallNothingIsChosen) {
    const TuneResult result = tune(test::random_vectors(3000, 12, DType::f32), in_lists(0), few());
    EXPECT_EQ(result.chosen, -1);
    EXPECT_FALSE(result.reaches);
    EXPECT_GT(result.records.size(), 3u);
}

TEST(Tune, ARecallOfOneIsThatOfAllPairs) {
    const TuneResult result = tune(test::random_vectors(3000, 12, DType::f32), tuned_for(1), few());
    ASSERT_GE(result.chosen, 0);
    EXPECT_EQ(result.records[std::size_t(result.chosen)].large.stop, StopReason::exact);
    EXPECT_EQ(result.params.recall, 1);
    EXPECT_TRUE(result.reaches);
}

TEST(Tune, SaysWhereTheLimitsAllowNoMore) {
    BuildParams params = tuned_for(0.99);
    params.samples = 4;
    params.list_size = 10;
    params.iterations = 2;
    const TuneResult result = tune(hard(3000, "gauss128"), params, few());
    ASSERT_GE(result.chosen, 0);
    EXPECT_FALSE(result.reaches);
    EXPECT_LT(result.records[std::size_t(result.chosen)].run().recall.value, 0.99);
    EXPECT_EQ(result.params.samples, 4);
}

TEST(Tune, RefusesWhatIsOutOfRange) {
    const Vectors vectors = test::random_vectors(3000, 12, DType::f32);
    const auto refused = [&](auto change, const std::string& text) {
        TuneParams how;
        change(how);
        const std::string message = error_of([&] { tune(vectors, in_lists(0.9), how); });
        EXPECT_NE(message.find(text), std::string::npos) << message;
    };
    refused([](TuneParams& how) { how.rows = 1; }, "TuneParams::rows (0: chosen) = 1, allowed are 2 to ");
    refused([](TuneParams& how) { how.rows = 1000; }, "TuneParams::rows = 1000, allowed are 1025 or more");
    refused([](TuneParams& how) { how.objects = 0; }, "TuneParams::objects = 0, allowed are 1 to ");
    refused([](TuneParams& how) { how.settings = 0; }, "TuneParams::settings = 0, allowed are 1 to 10000");
    refused([](TuneParams& how) { how.seconds = -1; }, "TuneParams::seconds = -1");
    refused([](TuneParams& how) { how.seconds = std::numeric_limits<double>::quiet_NaN(); }, "TuneParams::seconds");
    BuildParams params = in_lists(0.9);
    params.k = 0;
    EXPECT_NE(error_of([&] { tune(vectors, params); }).find("BuildParams::k"), std::string::npos);
    EXPECT_NE(error_of([&] {
                  tune({nullptr, 3000, 12, DType::f32, 0}, in_lists(0.9));
              }).find("null"),
              std::string::npos);
}

TEST(Tune, OneSampleIsEnoughWhereASmallerOneHasNoLists) {
    TuneParams how = few();
    how.rows = 1200;
    const Vectors vectors = test::random_vectors(3000, 12, DType::f32);
    const TuneResult result = tune(vectors, in_lists(0.9), how);
    EXPECT_EQ(result.small_rows, 0);
    EXPECT_EQ(result.large_rows, 1200);
    EXPECT_EQ(result.time_exponent, 0);
    for (const TuneRecord& record : result.records) {
        EXPECT_EQ(record.small.rows, 0);
        EXPECT_EQ(record.large.rows, 1200);
        EXPECT_EQ(record.predicted_seconds, 0);
    }
    EXPECT_GE(result.chosen, 0);
    EXPECT_TRUE(result.reaches);
}

TEST(Tune, HoldsForEveryMetricAndDType) {
    for (const Metric metric : test::kMetrics)
        for (const DType dtype : test::kDTypes) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            BuildParams params = in_lists(0.9);
            params.metric = metric;
            TuneParams how = few(2);
            how.rows = 1100;
            const Vectors vectors = test::vectors_for(metric, 1200, 8, dtype);
            const TuneResult result = tune(vectors, params, how);
            EXPECT_GT(result.records[0].large.recall.value, 0.95);
            EXPECT_TRUE(result.reaches);
        }
}

}  // namespace
}  // namespace gnnd
