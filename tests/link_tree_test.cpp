// SPDX-License-Identifier: MIT
// The tree under the links of a search graph (gnnd/detail/link_tree.h).
#include "gnnd/detail/link_tree.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "gnnd/random.h"
#include "tests/on_a_line.h"

namespace gnnd::test {
namespace {

class EqualObjects final : public detail::ObjectDistances {
  public:
    float between(std::int32_t /*a*/, std::int32_t /*b*/) override { return 0; }
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<EqualObjects>(); }
};

class FollowTest : public testing::TestWithParam<bool> {};

TEST_P(FollowTest, IsInOneOrderWithAnyNumberOfThreads) {
    constexpr int kObjects = 60000, kDegree = 6, kEntry = 77;
    const int before = omp_get_max_threads();
    std::vector<std::int32_t> links;
    gnnd::Random random(1, 1);
    for (int i = 0; i < kObjects * kDegree; ++i) links.push_back(std::int32_t(random.below(kObjects)));
    for (int i = 0; i < kObjects; i += 3) links[i * kDegree + 2] = -1;  // shorter rows
    const bool all = GetParam();
    for (int i = 0; all && i < kObjects; ++i) links[i * kDegree] = (i + 1) % kObjects;
    std::vector<std::int32_t> parents(kObjects, -1), order{kEntry};
    parents[kEntry] = kEntry;
    for (std::size_t at = 0; at < order.size(); ++at)
        for (int j = 0; j < kDegree; ++j) {
            const std::int32_t link = links[order[at] * kDegree + j];
            if (link < 0) break;
            if (parents[link] >= 0) continue;
            parents[link] = order[at];
            order.push_back(link);
        }
    ASSERT_GT(order.size(), 50000u);
    ASSERT_EQ(order.size() == kObjects, all);
    EqualObjects distances;
    for (const int threads : {1, 2, 4, 7}) {
        omp_set_num_threads(threads);
        std::vector<std::int32_t> found(kObjects, -1);
        detail::LinkRows rows(links.data(), {kDegree}, kEntry, found);
        detail::TreeGrowth(distances, rows).follow(kEntry);
        EXPECT_EQ(found, parents) << threads;
    }
    omp_set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(All, FollowTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "all_are_reached" : "some_are_not_reached"; });

TEST(LinkTree, MakesEdgesOfLinksAndTakesThemBack) {
    // 0 leads to 1 and 2, 1 to 3, 3 to 4.
    std::vector<std::int32_t> links{1, 2, 3, -1, -1, -1, 4, -1, -1, -1}, parents{0, 0, 0, 1, 3};
    const std::vector<std::int32_t> links_before = links, parents_before = parents;
    detail::LinkRows rows(links.data(), {2}, 0, parents);
    rows.keep(2);
    ASSERT_TRUE(rows.add(2, 3));
    rows.make_edge(2, 3);
    EXPECT_EQ(parents, (std::vector<std::int32_t>{0, 0, 0, 2, 3}));
    EXPECT_TRUE(rows.is_edge(2, 3));
    EXPECT_FALSE(rows.is_edge(1, 3));
    rows.keep(4);
    ASSERT_TRUE(rows.add(4, 2));
    rows.make_edge(4, 2);  // what 4 is reached through
    rows.make_edge(4, 0);  // the entry
    EXPECT_EQ(parents, (std::vector<std::int32_t>{0, 0, 0, 2, 3}));
    rows.undo();
    EXPECT_EQ(links, links_before);
    EXPECT_EQ(parents, parents_before);
}

/// Of the next ones only, so that long walks find all, and short ones what is near.
std::vector<std::int32_t> links_on_a_line(int objects, int degree) {
    std::vector<std::int32_t> links;
    for (int i = 0; i < objects; ++i)
        for (int j = 0; j < degree; ++j) links.push_back(std::clamp(i + j - (j < 2 ? 2 : 1), 0, objects - 1));
    for (int i = 0; i < objects; ++i) {  // no object links itself, or another twice
        std::int32_t* row = &links[i * degree];
        std::sort(row, row + degree);
        std::int32_t* end = std::unique(row, row + degree);
        std::fill(std::remove(row, end, i), row + degree, -1);
    }
    return links;
}

TEST(LinkTree, OpensWaysForSearchesOfFewSteps) {
    constexpr int kObjects = 2000, kDegree = 8;
    std::vector<std::int32_t> links = links_on_a_line(kObjects, kDegree), all(kObjects);
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::int32_t> parents(kObjects, -1);
    OnALine distances;
    detail::LinkRows rows(links.data(), {kDegree}, 0, parents);
    detail::TreeGrowth growth(distances, rows);
    growth.follow(0);
    growth.attach_others();
    const auto found = [&] {
        detail::BeamSearch search({links.data(), {kDegree}, 0, kDegree}, 16, 16, distances);
        return std::count_if(all.begin(), all.end(), [&](std::int32_t i) { return search.find(i); });
    };
    const auto before = found();
    EXPECT_EQ(growth.open_ways(), 0);  // since they help
    EXPECT_LT(before, kObjects / 10);
    EXPECT_GT(found(), kObjects * 2 / 3);
    std::vector<std::int32_t> reached(kObjects, -1);  // by the links as they are now
    detail::LinkRows anew(links.data(), {kDegree}, 0, reached);
    detail::TreeGrowth(distances, anew).follow(0);
    EXPECT_EQ(std::count(reached.begin(), reached.end(), -1), 0);
}

TEST(LinkTree, OpensTheSameWaysWithAnyNumberOfThreads) {
    constexpr int kObjects = 2000, kDegree = 8;
    const int before = omp_get_max_threads();
    std::vector<std::int32_t> one;
    for (const int threads : {1, 3, 8}) {
        omp_set_num_threads(threads);
        std::vector<std::int32_t> links = links_on_a_line(kObjects, kDegree), parents(kObjects, -1);
        OnALine distances;
        detail::LinkRows rows(links.data(), {kDegree}, 0, parents);
        detail::TreeGrowth growth(distances, rows);
        growth.follow(0);
        growth.open_ways();
        growth.open_ways_from(kObjects - 300, 0);
        if (one.empty()) one = links;
        EXPECT_EQ(links, one) << threads;
    }
    omp_set_num_threads(before);
}

TEST(LinkTree, TellsWhatASearchHadFoundByHalf) {
    constexpr int kObjects = 500, kDegree = 8;
    const std::vector<std::int32_t> links = links_on_a_line(kObjects, kDegree);
    OnALine distances;
    detail::BeamSearch whole({links.data(), {kDegree}, 0, kDegree}, 16, 16, distances),
        half({links.data(), {kDegree}, 0, kDegree}, 16, 8, distances);
    for (int i = 100; i < kObjects; ++i) {  // too far for either
        ASSERT_FALSE(whole.finds(i));
        half.find(i);
        ASSERT_EQ(whole.found_by_half(), half.found()) << i;
        ASSERT_EQ(whole.walked().size(), 16u);
        ASSERT_TRUE(std::equal(half.walked().begin(), half.walked().end(), whole.walked().begin()));
    }
}

/// Counts what it and all clones of it are asked for.
class Counted final : public OnALine {
  public:
    explicit Counted(std::atomic<int>& count) : count_(count) {}
    float between(std::int32_t a, std::int32_t b) override {
        ++count_;
        return OnALine::between(a, b);
    }
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<Counted>(count_); }

  private:
    std::atomic<int>& count_;
};

TEST(LinkTree, SearchesAgainOnlyWhereLinksHaveChanged) {
    // One after another, all of them edges of the tree: no link can be made. A search asks for the object itself, the
    // entry, 16 more, and whom the object and the nearest that was found link. How far its link leads is asked once.
    constexpr int kObjects = 2000, kKinds = 2, kAsked = 20;
    std::vector<std::int32_t> links(kObjects, -1), parents(kObjects, -1);
    std::iota(links.begin(), links.end() - 1, 1);
    std::atomic<int> count = 0;
    Counted distances(count);
    detail::LinkRows rows(links.data(), {1}, 0, parents);
    detail::TreeGrowth growth(distances, rows);
    growth.follow(0);
    growth.open_ways();
    EXPECT_GT(count, kObjects);
    EXPECT_LE(count, kObjects * (kKinds * kAsked + 1));
}

TEST(LinkTree, SearchesThatOnlyTellEndWhereTheAnswerIsKnown) {
    constexpr int kObjects = 500, kDegree = 8;
    const std::vector<std::int32_t> links = links_on_a_line(kObjects, kDegree);
    std::atomic<int> whole_count = 0, told_count = 0;
    Counted whole_distances(whole_count), told_distances(told_count);
    detail::BeamSearch whole({links.data(), {kDegree}, 0, kDegree}, 16, 16, whole_distances),
        told({links.data(), {kDegree}, 0, kDegree}, 16, 16, told_distances);
    int found = 0;
    for (int i = 0; i < kObjects; ++i) {
        const bool here = whole.find(i);
        ASSERT_EQ(told.finds(i), here) << i;
        if (!here) {
            ASSERT_EQ(told.found(), whole.found()) << i;
        }
        found += here;
    }
    EXPECT_GT(found, 5);
    EXPECT_LT(found, kObjects);
    EXPECT_LT(told_count, whole_count);
}

/// Objects from `line` on lie between others that are on a line, and are nobody's neighbours.
class BesideALine final : public detail::ObjectDistances {
  public:
    explicit BesideALine(int line) : line_(line) {}
    float between(std::int32_t a, std::int32_t b) override { return std::abs(place(a) - place(b)); }
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<BesideALine>(line_); }
    float place(std::int32_t i) const { return i < line_ ? float(i) : float(i - line_) * 10 + 5.25F; }

  private:
    const int line_;
};

TEST(LinkTree, LinksFromWhereObjectsWereReachedBefore) {
    constexpr int kLine = 1000, kBeside = 90, kDegree = 16;
    std::vector<std::int32_t> links = links_on_a_line(kLine, kDegree), parents(kLine + kBeside, -1), former = parents;
    links.resize(parents.size() * kDegree, -1);
    BesideALine distances(kLine);
    for (int i = kLine; i < kLine + kBeside; ++i) {
        const auto near = std::int32_t(distances.place(i));
        if (i % 3 == 0) former[i] = near + 1;                              // a search would find the one before
        if (i % 3 == 1) former[i] = i;                                     // an entry of its own
        if (i % 3 == 2) former[i] = i + 1 < kLine + kBeside ? i + 1 : -1;  // not reached itself yet
    }
    detail::LinkRows rows(links.data(), {kDegree}, 0, parents);
    detail::TreeGrowth growth(distances, rows);
    growth.follow(0);
    growth.attach_others(0, former);
    detail::BeamSearch search({links.data(), {kDegree}, 0, kDegree}, 64, kLine, distances);
    for (int i = kLine; i < kLine + kBeside; ++i) {
        ASSERT_GE(parents[i], 0);
        if (i % 3 == 0) {
            EXPECT_EQ(parents[i], former[i]);
        }
        EXPECT_TRUE(search.finds(i)) << i;
    }
}

TEST(LinkTree, TellsWhatIsMissedWhateverWaysThereAre) {
    constexpr int kObjects = 2000;
    std::vector<std::int32_t> links(kObjects, -1), parents(kObjects, -1);  // all of them edges of the tree
    std::iota(links.begin(), links.end() - 1, 1);
    OnALine distances;
    detail::LinkRows rows(links.data(), {1}, 0, parents);
    detail::TreeGrowth growth(distances, rows);
    growth.follow(0);
    EXPECT_GT(growth.open_ways(), 0.9);
}

TEST(LinkTree, OpensFewWaysWhereAsManyAreMissedAnyway) {
    constexpr int kObjects = 2000, kDegree = 8;
    const std::vector<std::int32_t> before = links_on_a_line(kObjects, kDegree);
    const auto changed = [&](double usual) {
        std::vector<std::int32_t> links = before, parents(kObjects, -1);
        OnALine distances;
        detail::LinkRows rows(links.data(), {kDegree}, 0, parents);
        detail::TreeGrowth growth(distances, rows);
        growth.follow(0);
        growth.open_ways_from(kObjects / 2, usual);
        int count = 0;
        for (int i = 0; i < kObjects; ++i)
            count += !std::equal(&before[i * kDegree], &before[i * kDegree] + kDegree, &links[i * kDegree]);
        return count;
    };
    const int few = changed(0.6), many = changed(0);
    EXPECT_GT(few, 0);
    EXPECT_LT(few, many / 2);
}

}  // namespace
}  // namespace gnnd::test
