// SPDX-License-Identifier: MIT
// tune(): what it says of settings is true, and what was set by hand stays.
#include "gnnd/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "gnnd/detail/tune_steps.h"
#include "gnnd/resources.h"
#include "tests/hard_sets.h"
#include "tests/tune.h"

namespace gnnd {
namespace {

using test::error_of;
using test::few;
using test::hard;
using test::in_lists;
using test::Truth;
using test::tuned_for;
using test::Vectors;

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

/// The walk may take all of the time. Independent components are as hard as can be: all pairs take about the default's
/// time.
TEST(Tune, ComparesAllPairsBeforeItTriesOtherSettings) {
    constexpr std::int64_t kRows = 17000;  // of which lists are built, too
    TuneParams how = few();
    how.settings = 2;
    how.objects = 300;
    const auto setting = [](const BuildParams& params) {
        return std::tuple(params.samples, params.list_size, params.trees, params.init, params.iterations);
    };
    std::optional<decltype(setting({}))> first;
    bool compared = false;
    int others = 0;
    TuneCallbacks callbacks;
    callbacks.progress = [&](const TuneRecord& record, const TuneRun& run) {
        if (!first) first = setting(record.params);
        if (record.params.recall == 1) {
            compared = compared || run.rows == kRows;
        } else if (setting(record.params) != *first) {
            EXPECT_TRUE(compared);
            ++others;
        }
    };
    const TuneResult result = tune(test::random_vectors(kRows, 64, DType::f32), tuned_for(0.99, 10), how, callbacks);
    EXPECT_GT(others, 0);
    ASSERT_GE(result.chosen, 0);
    // How long all pairs take beside lists is the machine's matter; they are chosen where they took the least time.
    const TuneRecord& chosen = result.records[std::size_t(result.chosen)];
    bool of_all_pairs = false;
    for (const TuneRecord& record : result.records) {
        if (record.params.recall == 0) continue;
        EXPECT_GE(record.large.recall.value, 0.99);
        EXPECT_GE(record.large.seconds, chosen.large.seconds);
        if (record.params.recall == 1) {
            of_all_pairs = true;
            EXPECT_EQ(record.large.stop, StopReason::exact);
        }
    }
    EXPECT_TRUE(of_all_pairs);
    EXPECT_NE(chosen.params.recall, 0);
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

}  // namespace
}  // namespace gnnd
