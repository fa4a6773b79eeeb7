// SPDX-License-Identifier: MIT
// A GPU compares a part of its sample first, and more where that part does not tell (detail/recall.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "gnnd/detail/recall.h"
#include "gnnd/random.h"

namespace gnnd {
namespace {

using detail::kSamplesOfGpu;
using detail::RecallCount;

TEST(SampleInAnyOrder, IsTheSampleAndAnyOfItComesFirst) {
    constexpr int kN = 60, kCount = 20, kFirst = 5, kTrials = 4000;
    std::vector<int> among_first(kN), among_others(kN);
    for (int seed = 0; seed < kTrials; ++seed) {
        const std::vector<std::int32_t> objects = detail::sample_in_any_order(kN, kCount, std::uint64_t(seed));
        ASSERT_EQ(objects, detail::sample_in_any_order(kN, kCount, std::uint64_t(seed)));
        std::vector<std::int32_t> sorted = objects;
        std::sort(sorted.begin(), sorted.end());
        ASSERT_EQ(sorted, detail::sample_objects(kN, kCount, std::uint64_t(seed)));
        for (int i = 0; i < kCount; ++i)
            ++(i < kFirst ? among_first : among_others)[std::size_t(objects[std::size_t(i)])];
    }
    // Of 4,000 each is first in a twelfth, with a standard deviation of 17.5, and among the others in a quarter (27).
    for (const int times : among_first) EXPECT_NEAR(times, kTrials / 12, 80);
    for (const int times : among_others) EXPECT_NEAR(times, kTrials / 4, 120);
}

TEST(ObjectsAtFirst, AreAPartWhereComparingTakesLong) {
    EXPECT_EQ(detail::objects_at_first(4096, 1000000, 128, 0.99), 1024);
    EXPECT_EQ(detail::objects_at_first(4096, 1000000, 768, 0.99), 1024);
    EXPECT_EQ(detail::objects_at_first(4096, 200000, 32, 0.99), 4096);
    EXPECT_EQ(detail::objects_at_first(4096, 20000, 768, 0.99), 4096);
    EXPECT_EQ(detail::objects_at_first(0, 0, 128, 0.99), 0);
}

TEST(MissingThatShows, IsAboutWhatASampleShows) {
    constexpr std::int64_t kN = 1000000;
    for (const auto& [recall, objects] :
         {std::pair{0.9, 1024}, {0.95, 4096}, {0.99, 4096}, {0.99, 16384}, {0.999, 15625}}) {
        SCOPED_TRACE(testing::Message() << recall << ", " << objects);
        const double missing = detail::missing_that_shows(recall, objects, kN);
        EXPECT_GT(missing, 0);
        EXPECT_LT(missing, 1 - recall);
        // Of objects that lack one entry of ten each, or none.
        const auto of = [&](double share) {
            detail::RecallCount count{kN, objects, 10};
            const auto lacking = std::int64_t(share * double(objects) * 10);
            for (std::int64_t i = 0; i < objects; ++i) count.add(i < lacking ? 9 : 10);
            return detail::shows(count, recall, detail::kSamplesOfGpu);
        };
        EXPECT_TRUE(of(missing * 0.9));
        EXPECT_FALSE(of((missing + 3 * (1 - recall)) / 4));
        EXPECT_EQ(detail::missing_that_shows(recall, objects, objects), 1 - recall) << "all are measured";
    }
    EXPECT_GT(detail::missing_that_shows(0.99, 4096, kN), detail::missing_that_shows(0.99, 1024, kN));
    EXPECT_EQ(detail::missing_that_shows(1, 4096, kN), 0);
}

TEST(ObjectsAtFirst, ShowWhatIsAskedForWhereLittleIsMissing) {
    for (const double recall : {0.0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.998, 0.999, 0.9999, 1.0})
        for (const std::int64_t n : {1000000, 100000000}) {
            const std::int64_t all = detail::objects_to_measure(n, recall);
            const std::int64_t first = detail::objects_at_first(all, n, 128, recall);
            EXPECT_GE(first, all / 4) << recall;
            if (first == all) continue;
            EXPECT_LE(first, all / 2 + 1) << recall;
            RecallCount count{n, first, 10};
            EXPECT_TRUE(detail::shows(count, recall, kSamplesOfGpu)) << recall;
            for (int i = 0; i < int(double(first) * 10 * (1 - recall) / 5); ++i) count.missed[0] += 1;
            for (int i = 1; i < RecallCount::kPowers; ++i) count.missed[i] = count.missed[0];  // one of an object each
            EXPECT_TRUE(detail::shows(count, recall, kSamplesOfGpu)) << recall << ", a fifth of what may be missing";
        }
    EXPECT_EQ(detail::objects_at_first(15625, 1000000, 128, 0.999), 15625) << "hardly any part would show it";
}

TEST(ObjectsToGoOnWith, AreAsManyAsPromiseToShowIt) {
    constexpr std::int64_t kN = 1000000, kAll = 4096;
    /// \param missing  entries of so many objects, one each
    const auto next = [&](std::int64_t objects, double missing) {
        RecallCount count{kN, objects, 10};
        std::fill_n(count.missed, RecallCount::kPowers, missing);
        if (detail::shows(count, 0.99, kSamplesOfGpu)) return std::int64_t(-1);
        return detail::objects_to_go_on_with(count, 0.99, kAll);
    };
    EXPECT_EQ(next(1024, 30), -1);
    EXPECT_EQ(next(1024, 55), 2048);
    EXPECT_NEAR(double(next(1024, 75)), 2560, 10);
    EXPECT_EQ(next(1024, 90), kAll);
    EXPECT_EQ(next(1024, 102.4), kAll) << "just what is asked for";
    EXPECT_EQ(next(1024, 110), kAll) << "all may have more";
    EXPECT_EQ(next(1024, 200), 1024) << "far below";
    EXPECT_EQ(next(2048, 170), kAll) << "no more than half as many are left";
    std::int64_t before = 0;
    for (double missing = 46; missing < 102; ++missing) {
        const std::int64_t here = next(1024, missing);
        if (here < 0) continue;
        EXPECT_GE(here, before);
        EXPECT_GE(here, 2048);
        EXPECT_LE(here, kAll);
        before = here;
    }
}

/// What each object of a graph lacks in the course of a build: entries are found one after another and stay found.
class SimulatedBuild {
  public:
    static constexpr int kAt = 10;
    /// \param together  entries of an object that are found together
    SimulatedBuild(int n, int together, std::uint64_t seed) : together_(together), places_(std::size_t(n)) {
        Random random(seed, 5);
        for (double& place : places_) place = double(random.below(1 << 30)) / (1 << 30);
    }
    /// Of the entries so many are missing, as a share.
    int found(std::int32_t object, double missing) const {
        return places_[std::size_t(object)] < missing * kAt / together_ ? kAt - together_ : kAt;
    }
    double truth(double missing) const {
        double sum = 0;
        for (std::size_t i = 0; i < places_.size(); ++i) sum += found(std::int32_t(i), missing);
        return sum / (kAt * double(places_.size()));
    }

  private:
    int together_;
    std::vector<double> places_;
};

struct Ended {
    int iteration;
    RecallEstimate estimate;
};

/// A build that ends when its sample shows the recall, as a GPU's does. \param first  of the sample, that are measured
/// until more objects may show what they do not
Ended end_of(const SimulatedBuild& build, int n, const std::vector<double>& missing, int first, int all, double wanted,
             std::uint64_t seed) {
    const std::vector<std::int32_t> objects = detail::sample_in_any_order(n, all, seed);
    int measured = first;
    for (int iteration = 0;; ++iteration) {
        const double share = missing[std::size_t(iteration)];
        const auto count = [&] {
            RecallCount counted{n, measured, SimulatedBuild::kAt};
            for (int i = 0; i < measured; ++i) counted.add(build.found(objects[std::size_t(i)], share));
            return counted;
        };
        while (measured < all && !detail::shows(count(), wanted, kSamplesOfGpu)) {
            const auto next = int(detail::objects_to_go_on_with(count(), wanted, all));
            if (next == measured) break;
            measured = next;
        }
        const RecallCount counted = count();
        const bool last = iteration + 1 == int(missing.size());
        if (last || detail::shows(counted, wanted, kSamplesOfGpu))
            return {iteration, detail::estimate_recall(counted, kSamplesOfGpu)};
    }
}

TEST(ObjectsToGoOnWith, LetTheIntervalHoldAndNoBuildGoOnForThem) {
    constexpr int kN = 100000, kAll = 4096, kFirst = 1024, kTrials = 300;
    constexpr double kWanted = 0.99;
    // Easy builds, and ones that get there slowly, looked at again and again, or not.
    std::vector<std::vector<double>> builds{{0.4, 0.06, 0.003, 0.001}, {0.6, 0.2, 0.03, 0.002}};
    for (const double end : {0.011, 0.0101, 0.0085, 0.007, 0.004}) {
        std::vector<double>& missing = builds.emplace_back();
        for (const double times : {20.0, 5.0, 2.0, 1.4, 1.2, 1.1, 1.05, 1.0}) missing.push_back(end * times);
    }
    const std::vector<double>& easy = builds[0];
    int by_parts = 0, longer = 0, all_builds = 0;
    for (const int together : {1, 4, 10})
        for (const std::vector<double>& missing : builds) {
            int held = 0, early = 0;
            for (int trial = 0; trial < kTrials; ++trial) {
                const SimulatedBuild build(kN, together, std::uint64_t(trial % 10));
                const auto end = [&](int first) {
                    return end_of(build, kN, missing, first, kAll, kWanted, std::uint64_t(trial));
                };
                const Ended by_part = end(kFirst), by_all = end(kAll);
                const double truth = build.truth(missing[std::size_t(by_part.iteration)]);
                held += by_part.estimate.low <= truth && truth <= by_part.estimate.high;
                early += by_part.iteration + 1 < int(missing.size()) && truth < kWanted;
                by_parts += missing == easy && by_part.estimate.objects == kFirst;
                longer += by_part.iteration > by_all.iteration;
                ++all_builds;
            }
            EXPECT_GE(held, 0.95 * kTrials) << missing.back() << " missing, " << together << " together";
            EXPECT_LE(early, 0.04 * kTrials) << missing.back() << " missing, " << together << " together";
        }
    EXPECT_GE(by_parts, 0.5 * 3 * kTrials);
    EXPECT_LE(longer, 0.002 * all_builds);
}

}  // namespace
}  // namespace gnnd
