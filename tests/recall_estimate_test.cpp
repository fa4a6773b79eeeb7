// SPDX-License-Identifier: MIT
// A sample of objects tells a graph's recall (detail/recall.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/detail/recall.h"
#include "gnnd/random.h"

namespace gnnd {
namespace {

using detail::estimate_recall;
using detail::sample_objects;

TEST(RecallAt, IsTenOrKOrWhatIsAsked) {
    BuildParams params;
    EXPECT_EQ(detail::recall_at_of(params), 10);
    params.k = 4;
    EXPECT_EQ(detail::recall_at_of(params), 4);
    params.recall_at = 3;
    EXPECT_EQ(detail::recall_at_of(params), 3);
}

TEST(SampleObjects, AreMoreForAHighRecallOfALargeSet) {
    EXPECT_EQ(detail::objects_to_measure(1000000, 0.99), 4096);
    EXPECT_EQ(detail::objects_to_measure(10000000, 0.998), 8192);
    EXPECT_EQ(detail::objects_to_measure(1000000, 0.999), 1000000 / 64);
    EXPECT_EQ(detail::objects_to_measure(10000000, 1.0), 16384);
    EXPECT_EQ(detail::objects_to_measure(1000, 0.99), 4096);
}

TEST(SampleObjects, AreEnoughToShowAHighRecall) {
    EXPECT_EQ(detail::objects_that_show(0), 4096);
    EXPECT_EQ(detail::objects_that_show(0.99), 4096);
    EXPECT_EQ(detail::objects_that_show(1), 8192);
    const std::int64_t objects = detail::objects_that_show(0.999);
    EXPECT_EQ(detail::objects_to_measure(1000, 0.999), objects);
    EXPECT_TRUE(detail::shows({1 << 30, objects, 10}, 0.999, detail::kSamplesOfGpu));
    EXPECT_GE(estimate_recall({1 << 30, objects, 10}, detail::kSamplesOfGpu).low, 0.999);
    EXPECT_LT(estimate_recall({1 << 30, objects - 10, 10}, detail::kSamplesOfGpu).low, 0.999);
}

TEST(SampleObjects, TakesEachAtMostOnceAndAllAlike) {
    EXPECT_EQ(sample_objects(5, 9, 1), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(sample_objects(5, 5, 1), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
    std::vector<int> taken(20);
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        const std::vector<std::int32_t> objects = sample_objects(20, 7, seed);
        ASSERT_EQ(objects, sample_objects(20, 7, seed));
        ASSERT_EQ(objects.size(), 7u);
        ASSERT_TRUE(std::is_sorted(objects.begin(), objects.end()));
        ASSERT_EQ(std::set<std::int32_t>(objects.begin(), objects.end()).size(), 7u);
        for (const std::int32_t object : objects) ++taken.at(object);
    }
    // 700 times each, with a standard deviation of 21.
    for (const int times : taken) EXPECT_NEAR(times, 700, 100);
}

/// Draws, for each of n objects, the number of its true neighbours that a graph has.
std::vector<int> objects_that_have(int n, const std::function<int(Random&)>& found) {
    Random random(7);
    std::vector<int> all(n);
    for (int& one : all) one = found(random);
    return all;
}

TEST(RecallEstimate, HoldsTheTruthAsOftenAsItSays) {
    static constexpr int kAt = 10, kObjects = 6000, kTrials = 600;
    const auto binomial = [](double p) {
        return [p](Random& random) {
            int found = 0;
            for (int j = 0; j < kAt; ++j) found += random.below(1 << 20) < p * (1 << 20);
            return found;
        };
    };
    const auto share = [](double of_bad, int bad, int good) {
        return [=](Random& random) { return random.below(1 << 20) < of_bad * (1 << 20) ? bad : good; };
    };
    const struct {
        const char* name;
        std::function<int(Random&)> found;
    } cases[]{{"independent entries", binomial(0.9)},
              {"independent entries near 1", binomial(0.9985)},
              {"all or nothing", share(0.3, 0, kAt)},
              {"few objects without any", share(0.004, 0, kAt)},
              {"many that miss one", share(0.05, kAt - 1, kAt)},
              {"skewed", [](Random& random) { return kAt - std::min<int>(kAt, int(200 / (1 + random.below(2000)))); }},
              {"all found", [](Random&) { return kAt; }},
              {"none found", [](Random&) { return 0; }}};
    for (const auto& [name, found] : cases) {
        const std::vector<int> all = objects_that_have(kObjects, found);
        double truth = 0;
        for (const int one : all) truth += double(one) / kAt / kObjects;
        for (const int sampled : {512, 2048}) {
            int held = 0;
            for (int trial = 0; trial < kTrials; ++trial) {
                detail::RecallCount count{kObjects, sampled, kAt};
                for (const std::int32_t i : sample_objects(kObjects, sampled, std::uint64_t(trial))) count.add(all[i]);
                const RecallEstimate estimate = estimate_recall(count);
                ASSERT_LE(estimate.low, estimate.value);
                ASSERT_GE(estimate.high, estimate.value);
                ASSERT_EQ(estimate.objects, sampled);
                ASSERT_EQ(estimate.at, kAt);
                held += estimate.low <= truth + 1e-12 && truth <= estimate.high + 1e-12;
            }
            EXPECT_GE(held, 0.92 * kTrials) << name << ", " << sampled << " objects";
        }
    }
}

/// The interval of the sample that ends the measurement, which doubles where cpu::Measurement's grows as it must.
RecallEstimate decided_estimate(const std::vector<int>& all, int at, int first, int looks, double wanted,
                                std::uint64_t seed) {
    std::vector<std::int32_t> objects = sample_objects(int(all.size()), first << (looks - 1), seed);
    Random random(seed, 1);
    for (std::size_t i = objects.size(); i > 1; --i) std::swap(objects[i - 1], objects[random.below(std::uint32_t(i))]);
    detail::RecallCount count{std::int64_t(all.size()), 0, at};
    for (int look = 0;; ++look) {
        for (; count.objects < first << look; ++count.objects) count.add(all[std::size_t(objects[count.objects])]);
        const RecallEstimate estimate = estimate_recall(count);
        if (look + 1 == looks || detail::is_decided(estimate, wanted)) return estimate;
    }
}

TEST(RecallEstimate, HoldsTheTruthWhereASampleGrowsUntilItDecides) {
    static constexpr int kAt = 10, kObjects = 20000, kTrials = 400;
    static constexpr double kWanted = 0.99;
    for (const double missing : {0.002, 0.0085, 0.0095, 0.01, 0.0105, 0.0115, 0.02})
        for (const int together : {1, 5, 10}) {  // entries of an object that are missing together
            const auto bound = std::uint32_t(missing * kAt / together * (1 << 20));
            const std::vector<int> all = objects_that_have(
                kObjects, [&](Random& random) { return random.below(1 << 20) < bound ? kAt - together : kAt; });
            double truth = 0;
            for (const int one : all) truth += double(one) / kAt / kObjects;
            int held = 0;
            for (int trial = 0; trial < kTrials; ++trial) {
                const RecallEstimate estimate = decided_estimate(all, kAt, 256, 5, kWanted, std::uint64_t(trial));
                held += estimate.low <= truth && truth <= estimate.high;
            }
            // 380 are expected at least, with a standard deviation of 4.4.
            EXPECT_GE(held, 0.92 * kTrials) << missing << " missing, " << together << " together";
        }
}

TEST(RecallEstimate, HoldsTheTruthWhereFewObjectsLackNearlyAll) {
    // Of a sample that has none of these the others say nothing of them: Wilson's interval failed in 1 of 10.
    static constexpr int kAt = 10, kObjects = 20000, kTrials = 400;
    for (const double of_bad : {0.009, 0.01, 0.011}) {
        const std::vector<int> all = objects_that_have(kObjects, [&](Random& random) {
            const double chance = random.below(1 << 20) / double(1 << 20);
            return chance < of_bad ? 0 : chance < of_bad + 0.01 ? kAt - 1 : kAt;
        });
        double truth = 0;
        for (const int one : all) truth += double(one) / kAt / kObjects;
        int held = 0;
        for (int trial = 0; trial < kTrials; ++trial) {
            const RecallEstimate estimate = decided_estimate(all, kAt, 256, 6, 0.99, std::uint64_t(trial));
            held += estimate.low <= truth && truth <= estimate.high;
        }
        EXPECT_GE(held, 0.95 * kTrials) << of_bad;
    }
}

TEST(RecallEstimate, HoldsTheTruthWhereABuildEndsOnceItShows) {
    static constexpr int kAt = 10, kObjects = 20000, kTrials = 400, kIterations = 20;
    static constexpr double kWanted = 0.99;
    Random random(7);
    std::vector<int> place(kObjects), all(kObjects);
    for (int& one : place) one = int(random.below(1 << 20));
    int held = 0, early = 0;
    std::vector<RecallEstimate> ended(kTrials);
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        const double of_bad = 0.0116 - 0.0001 * iteration;  // what is found stays found
        double truth = 0;
        for (int i = 0; i < kObjects; ++i) {
            all[i] = place[i] < of_bad * (1 << 20) ? 0 : kAt;
            truth += double(all[i]) / kAt / kObjects;
        }
        for (int trial = 0; trial < kTrials; ++trial) {
            if (ended[trial].objects != 0) continue;
            const RecallEstimate estimate = decided_estimate(all, kAt, 256, 6, kWanted, std::uint64_t(trial));
            if (estimate.low < kWanted && iteration + 1 < kIterations) continue;
            ended[trial] = estimate;
            held += estimate.low <= truth && truth <= estimate.high;
            early += truth < kWanted;
        }
    }
    EXPECT_GE(held, 0.95 * kTrials);
    EXPECT_LE(early, 0.05 * kTrials);
}

TEST(RecallEstimate, OfAllObjectsIsCertain) {
    detail::RecallCount count{4, 4, 10};
    for (const int found : {10, 9, 10, 5}) count.add(found);
    EXPECT_TRUE(detail::shows(count, 0.85));
    EXPECT_FALSE(detail::shows(count, 0.8501));
    const RecallEstimate estimate = estimate_recall(count);
    EXPECT_DOUBLE_EQ(estimate.value, 0.85);
    EXPECT_EQ(estimate.low, estimate.value);
    EXPECT_EQ(estimate.high, estimate.value);
}

TEST(RecallEstimate, OfTwoPartsIsTheirMean) {
    const RecallEstimate a{0.9, 0.86, 0.93, 10, 300}, b{1, 0.97, 1, 10, 200};
    const RecallEstimate both = detail::join_recalls(a, 3000, b, 1000);
    EXPECT_DOUBLE_EQ(both.value, 0.925);
    EXPECT_DOUBLE_EQ(both.low, 0.925 - std::hypot(0.03, 0.0075));
    EXPECT_DOUBLE_EQ(both.high, 0.925 + 0.0225);
    EXPECT_EQ(both.at, 10);
    EXPECT_EQ(both.objects, 500);
}

TEST(RecallEstimate, SaysWhetherMoreObjectsAreNeededAndWhatCounts) {
    struct Case {
        double low, value, high;
        std::int64_t objects;
        bool decided, reached;
    };
    for (const Case& c : {Case{0.990, 0.993, 0.995, 4096, true, true}, Case{0.985, 0.987, 0.9899, 4096, true, false},
                          Case{0.985, 0.9901, 0.995, 4096, false, true}, Case{0.985, 0.9899, 0.995, 4096, false, false},
                          Case{0.970, 0.98, 0.995, detail::kEnoughMeasured, false, false},
                          Case{0.970, 0.98, 0.995, detail::kEnoughMeasured - 1, false, true},
                          Case{0.970, 0.98, 0.989, 10, true, false}}) {
        const RecallEstimate estimate{c.value, c.low, c.high, 10, c.objects};
        EXPECT_EQ(detail::is_decided(estimate, 0.99), c.decided) << c.value << " of " << c.objects;
        EXPECT_EQ(detail::is_reached(estimate, 0.99), c.reached) << c.value << " of " << c.objects;
    }
}

TEST(RecallEstimate, TellsThePartThatLacksMost) {
    const RecallEstimate good{0.995, 0.992, 0.997, 10, 4096}, bad{0.98, 0.977, 0.982, 10, 4096},
        worse{0.97, 0.967, 0.973, 10, 4096};
    const auto part = [](const RecallEstimate& of_old, const RecallEstimate& of_added) {
        const detail::ObjectRange below = detail::part_below(of_old, 1000, of_added, 50, 0.99);
        return std::pair(below.first, below.count);
    };
    using Range = std::pair<std::int64_t, std::int64_t>;
    EXPECT_EQ(part(good, good).second, 0);
    EXPECT_EQ(part(bad, good), Range(0, 1000));
    EXPECT_EQ(part(good, bad), Range(1000, 50));
    EXPECT_EQ(part(bad, worse), Range(1000, 50));
    EXPECT_EQ(part(worse, bad), Range(0, 1000));
}

TEST(RecallEstimate, OfRowsCountsTrueIdsAndTies) {
    for (const Metric metric : {Metric::L2, Metric::InnerProduct}) {
        const float sign = is_similarity(metric) ? -1 : 1;
        const std::int32_t truth_ids[] = {1, 2, 4, 5};
        const float truth_values[] = {sign * 1, sign * 2, sign * 3, sign * 4};
        // Row 0: a tie with the last true one, and a true one of another value. Row 1: a farther one, and nothing.
        const std::int32_t ids[] = {7, 2, 9, 5, 8, -1};
        const float values[] = {sign * 2, sign * 2.5f, sign * 3, sign * 4, sign * 5, sign * 3};
        const KnnGraphView truth{2, 2, metric, truth_ids, truth_values};
        const KnnGraphView lists{2, 3, metric, ids, values};
        const RecallEstimate estimate = estimate_recall(9, 3, lists, truth);
        EXPECT_DOUBLE_EQ(estimate.value, 3.0 / 4);
        EXPECT_EQ(estimate.at, 2);
        EXPECT_EQ(estimate.objects, 2);
    }
}

TEST(RecallEstimate, CountsSumsOfQuotientsThatRoundApart) {
    const std::int32_t true_ids[] = {1, 2}, ids[] = {1, 3, 1, 4};
    const float last = 0.7F, apart = std::nextafter(std::nextafter(last, 1.0F), 1.0F);
    const float true_values[] = {0.5F, last}, values[] = {0.5F, apart, 0.5F, 0.70001F};
    const auto found = [&](Metric metric, int row) {
        const KnnGraphView truth{1, 2, metric, true_ids, true_values};
        return estimate_recall(9, 20, {1, 2, metric, ids + 2 * row, values + 2 * row}, truth).value;
    };
    EXPECT_EQ(found(Metric::ChiSquare, 0), 1);
    EXPECT_EQ(found(Metric::ChiSquare, 1), 0.5);
    EXPECT_EQ(found(Metric::L1, 0), 0.5);
}

TEST(RecallEstimate, OfOneObjectSaysLittle) {
    const RecallEstimate estimate = estimate_recall({1000, 1, 10});
    EXPECT_EQ(estimate.value, 1);
    EXPECT_EQ(estimate.high, 1);
    EXPECT_LT(estimate.low, 0.3);
}

}  // namespace
}  // namespace gnnd
