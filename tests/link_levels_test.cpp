// SPDX-License-Identifier: MIT
// Levels above the links of all objects (gnnd/detail/link_levels.h), and searches that come down them. That an index of
// FAISS takes them is tested with the adapters, what they find with indexes, gnnd_index_scales_test.cpp.
#include "gnnd/detail/link_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "gnnd/detail/beam_search.h"
#include "gnnd/detail/link_tree.h"
#include "tests/links.h"
#include "tests/on_a_line.h"

namespace gnnd::test {
namespace {

using detail::LinkLevels;

TEST(LinkLevels, EndWhereNearlyAllCanBeLinked) {
    EXPECT_EQ(LinkLevels::sizes_for(1'000'000, 16), (std::vector<std::int64_t>{62500, 3906, 244, 15}));
    EXPECT_EQ(LinkLevels::sizes_for(10'000, 32), (std::vector<std::int64_t>{312, 9}));
    EXPECT_EQ(LinkLevels::sizes_for(10'000, 2), (std::vector<std::int64_t>{1250, 156, 19, 2}));  // not one in two
    EXPECT_EQ(LinkLevels::sizes_for(33, 16), (std::vector<std::int64_t>{2}));
    EXPECT_TRUE(LinkLevels::sizes_for(31, 16).empty());
    EXPECT_EQ(LinkLevels::places_for(10'000, 64, 32), (20'000u + 321) * 32);
    EXPECT_EQ(LinkLevels::places_for(31, 32, 16), 31u * 32);
    EXPECT_EQ(LinkLevels::places_for(10'000, 64, 0), 640'000u);
}

/// Links of numbers on a line, on all levels.
struct Leveled {
    static constexpr int kDegree = 6, kUpperDegree = 4;
    static constexpr std::int32_t kEntry = 700;

    /// \param links  n x kDegree, of level 0
    explicit Leveled(std::vector<std::int32_t> given, int threads = 0)
        : n(std::int64_t(given.size()) / kDegree), links(std::move(given)), counts(n), offsets(n + 1) {
        std::vector<float> rows(n);
        std::iota(rows.begin(), rows.end(), 0.0f);
        LinkParams params{kUpperDegree, kCpu, threads};
        const LinkLevels levels({rows.data(), n, 1, DType::f32, 0}, Metric::L2, kEntry, params, {}, nullptr);
        links.resize(LinkLevels::places_for(n, kDegree, kUpperDegree));
        levels.put_into(kDegree, links.data(), counts.data(), offsets.data());
        layout = {kDegree, offsets.data(), levels.top(), kUpperDegree};
    }

    std::int64_t n;
    std::vector<std::int32_t> links;
    std::vector<int> counts;
    std::vector<std::size_t> offsets;
    detail::LinkLayout layout;
};

/// To the next numbers on both sides, as far as these are of the same part of the line.
std::vector<std::int32_t> next_ones(std::int32_t n, std::int32_t part) {
    std::vector<std::int32_t> links;
    for (std::int32_t i = 0; i < n; ++i) {
        std::array<std::int32_t, Leveled::kDegree> row;
        row.fill(-1);
        auto end = row.begin();
        for (const std::int32_t step : {-1, 1, -2, 2, -3, 3})
            if (i + step >= 0 && i + step < n && (i + step) / part == i / part) *end++ = i + step;
        links.insert(links.end(), row.begin(), row.end());
    }
    return links;
}

TEST(LinkLevels, LieBehindTheLinksOfLevel0) {
    constexpr std::int32_t kObjects = 5000;
    const std::vector<std::int32_t> given = next_ones(kObjects, kObjects);
    const Leveled made(given, 1);
    const std::vector<std::int64_t> sizes = LinkLevels::sizes_for(kObjects, Leveled::kUpperDegree);
    ASSERT_EQ(made.layout.top, int(sizes.size()));
    EXPECT_EQ(made.offsets.back(), made.links.size());
    EXPECT_EQ(made.counts[Leveled::kEntry], made.layout.top + 1);
    for (int level = 1; level <= made.layout.top; ++level)
        EXPECT_EQ(std::count_if(made.counts.begin(), made.counts.end(), [&](int count) { return count > level; }),
                  sizes[level - 1]);
    for (std::int64_t i = 0; i < kObjects; ++i) {
        const std::int32_t* row = made.links.data() + made.layout.begin_of(i);
        // Those on level 1 have a link of it in place of the last one.
        const int kept = Leveled::kDegree - (made.counts[i] > 1 ? Leveled::kDegree / 4 : 0);
        ASSERT_TRUE(std::equal(row, row + kept, given.begin() + i * Leveled::kDegree)) << i;
        if (kept < Leveled::kDegree) {
            ASSERT_GE(row[kept], 0);
            ASSERT_GT(made.counts[row[kept]], 1);
            ASSERT_TRUE(std::find(row, row + kept, row[kept]) == row + kept);
        }
        ASSERT_EQ(made.offsets[i + 1] - made.offsets[i],
                  std::size_t(Leveled::kDegree + (made.counts[i] - 1) * Leveled::kUpperDegree));
        for (int level = 1; level < made.counts[i]; ++level) {
            const std::int32_t* upper = made.links.data() + made.layout.begin_of(i, level);
            std::vector<std::int32_t> there(upper, std::find(upper, upper + Leveled::kUpperDegree, -1));
            ASSERT_FALSE(there.empty()) << i;
            std::sort(there.begin(), there.end());
            ASSERT_TRUE(std::adjacent_find(there.begin(), there.end()) == there.end()) << i;
            for (const std::int32_t link : there) {
                ASSERT_NE(link, i);
                ASSERT_GT(made.counts[link], level) << i;
            }
        }
    }
    const Leveled again(given, 3);
    EXPECT_EQ(again.links, made.links);
    EXPECT_EQ(again.offsets, made.offsets);
}

TEST(LinkLevels, LeadToWhereSearchesLookAround) {
    constexpr std::int32_t kObjects = 5000, kSteps = 8;
    const Leveled made(next_ones(kObjects, kObjects));
    OnALine distances;
    const auto found = [&](const detail::LinkLayout& layout) {
        detail::BeamSearch search({made.links.data(), layout, Leveled::kEntry, Leveled::kDegree}, 8, kSteps, distances);
        int count = 0;
        for (std::int32_t i = 0; i < kObjects; ++i) count += int(search.find(i));
        return count;
    };
    EXPECT_GT(found(made.layout), kObjects * 0.99);
    EXPECT_LT(found({Leveled::kDegree, made.layout.offsets}), 100);
}

class LinkLevelsOfParts : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, LinkLevelsOfParts, testing::Bool(),
                         [](const auto& info) { return info.param ? "both_ways" : "one_way"; });

/// Levels reach what the links of level 0 do not: that is attached to what is reached by these all the same. Searches
/// begin anywhere then: from wherever they do links lead to all.
TEST_P(LinkLevelsOfParts, AreReachedByLinksAndLeadOn) {
    constexpr std::int32_t kObjects = 3000;
    std::vector<std::int32_t> given = next_ones(kObjects, 50);
    for (std::int32_t i = 0; !GetParam() && i < kObjects; ++i) {
        const auto row = given.begin() + i * Leveled::kDegree, end = row + Leveled::kDegree;
        std::fill(std::remove_if(row, end, [&](std::int32_t link) { return link < i; }), end, -1);
    }
    Leveled made(given);
    for (std::int32_t i = 0; i < kObjects; ++i)  // as if none led across
        std::copy_n(given.begin() + i * Leveled::kDegree, Leveled::kDegree,
                    made.links.begin() + std::ptrdiff_t(made.layout.begin_of(i)));
    const std::vector<std::int32_t> before = made.links;
    std::vector<std::int32_t> parents(kObjects, -1);
    OnALine distances;
    detail::LinkRows rows(made.links.data(), made.layout, Leveled::kEntry, parents);
    ASSERT_TRUE(rows.has_levels());
    detail::TreeGrowth growth(distances, rows);
    growth.follow(Leveled::kEntry);
    EXPECT_EQ(std::count(parents.begin(), parents.end(), -1), kObjects - 50);
    growth.attach_others();
    growth.open_ways();
    for (std::int32_t i = 0; i < kObjects; ++i) {
        ASSERT_TRUE(std::find(rows.of(i), rows.end_of(i), i) == rows.end_of(i)) << i;
        std::int32_t at = i, steps = 0;
        for (; at != Leveled::kEntry && steps < kObjects; ++steps) {
            ASSERT_GE(parents[at], 0) << i;
            ASSERT_TRUE(std::find(rows.of(parents[at]), rows.end_of(parents[at]), at) != rows.end_of(parents[at]));
            at = parents[at];
        }
        ASSERT_EQ(at, Leveled::kEntry) << i;
        const std::size_t begin = made.layout.begin_of(i) + Leveled::kDegree, end = made.offsets[i + 1];
        ASSERT_TRUE(std::equal(made.links.begin() + begin, made.links.begin() + end, before.begin() + begin)) << i;
    }
    std::vector<std::vector<std::int32_t>> sources(kObjects);
    for (std::int32_t i = 0; i < kObjects; ++i)
        std::for_each(rows.of(i), rows.end_of(i), [&](std::int32_t link) { sources[link].push_back(i); });
    std::vector<std::int32_t> lead{Leveled::kEntry};
    std::vector<bool> leads(kObjects);
    leads[Leveled::kEntry] = true;
    for (std::size_t at = 0; at < lead.size(); ++at)
        for (const std::int32_t source : sources[lead[at]]) {
            if (!leads[source]) lead.push_back(source);
            leads[source] = true;
        }
    EXPECT_EQ(lead.size(), std::size_t(kObjects));
}

}  // namespace
}  // namespace gnnd::test
