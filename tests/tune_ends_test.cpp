// SPDX-License-Identifier: MIT
// tune() of sets and limits at the border: bad rows, no time, no room, an interrupt, and every metric and type.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "gnnd/detail/tune_choice.h"
#include "gnnd/error.h"
#include "gnnd/tune.h"
#include "tests/hard_sets.h"
#include "tests/tune.h"

namespace gnnd {
namespace {

using test::error_of;
using test::few;
using test::hard;
using test::in_lists;
using test::tuned_for;
using test::Vectors;

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
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    Clock::time_point first;
    double last = 0;  // from the first build's end to the last one's
    callbacks.progress = [&](const TuneRecord&, const TuneRun&) {
        if (++builds == 1) first = Clock::now();
        last = seconds_since(first);
    };
    // Long enough for some builds and too short for thousands, however fast the machine is.
    for (how.seconds = 0.2; how.seconds < 100; how.seconds *= 2) {
        builds = 0;
        const Clock::time_point start = Clock::now();
        try {
            const TuneResult result = tune(vectors, in_lists(0.9), how, callbacks);
            const double took = seconds_since(start);
            EXPECT_FALSE(result.complete);
            EXPECT_GE(result.chosen, 0);
            EXPECT_GE(builds, int(result.records.size()));
            EXPECT_LE(result.seconds, took);
            EXPECT_GE(result.seconds, last);
            EXPECT_LT(took, 10 * how.seconds + 30) << "all settings take the machine hundreds of times as long";
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

TEST(Tune, NoSampleOfObjectsPromisesARecallOfOne) {
    TuneRecord lists, all_pairs;
    lists.large.rows = all_pairs.large.rows = 3000;
    lists.large.recall.value = all_pairs.large.recall.value = 1;
    lists.large.seconds = 1;
    all_pairs.large.seconds = 2;
    lists.params = tuned_for(0);
    all_pairs.params = tuned_for(1);
    TuneResult result;
    result.records = {lists, all_pairs};
    detail::choose(result, tuned_for(0.99));
    EXPECT_EQ(result.chosen, 0);
    EXPECT_TRUE(result.reaches);
    detail::choose(result, tuned_for(1));
    EXPECT_EQ(result.chosen, 1);
    EXPECT_TRUE(result.reaches);
    result.records = {lists};
    detail::choose(result, tuned_for(1));
    EXPECT_EQ(result.chosen, 0);
    EXPECT_FALSE(result.reaches);
    EXPECT_EQ(result.params.recall, 1);
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
