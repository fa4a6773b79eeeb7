// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "gnnd/detail/fold.h"

namespace gnnd::shards {
namespace {

using detail::fold;
using detail::Partner;

struct Entry {
    float distance;
    std::int32_t id;
};

/// Rows in order, best first.
void sort_row(Metric metric, std::vector<Entry>& row) {
    std::sort(row.begin(), row.end(), [&](const Entry& a, const Entry& b) {
        const float sign = is_similarity(metric) ? -1 : 1;
        return std::tuple(sign * a.distance, a.id) < std::tuple(sign * b.distance, b.id);
    });
}

void put(KnnGraph& graph, std::int64_t i, const std::vector<Entry>& row) {
    for (std::int64_t j = 0; j < graph.k(); ++j) {
        const bool there = j < std::int64_t(row.size());
        graph.ids()[i * graph.k() + j] = there ? row[j].id : -1;
        graph.distances()[i * graph.k() + j] = there ? row[j].distance : worst_value(graph.metric());
    }
}

using Case = std::tuple<Metric, int, int, int>;  // k of the lists, entries of a list before, entries found

class Fold : public testing::TestWithParam<Case> {};

// Two partners, in both orders, against sorting everything.
TEST_P(Fold, KeepsTheBestOfAll) {
    const Metric metric = std::get<0>(GetParam());
    const int k = std::get<1>(GetParam()), before = std::get<2>(GetParam()), found_k = std::get<3>(GetParam());
    constexpr std::int64_t kRows = 3000, kOwn = 5000;  // ids 0.. of the own shard, then the partners
    std::mt19937 random(7);
    KnnGraph lists(kRows, k, metric), expected = lists;
    std::vector<KnnGraph> found;
    const Partner partners[2] = {{50, 150, kOwn}, {0, 100, kOwn + 1000000}};
    for (int p = 0; p < 2; ++p) found.emplace_back(kRows, found_k, metric);
    const auto draw = [&](int count, int ids) {
        std::vector<Entry> row;
        std::vector<std::int32_t> all(ids);
        for (int i = 0; i < ids; ++i) all[i] = i;
        std::shuffle(all.begin(), all.end(), random);
        for (int i = 0; i < std::min(count, ids); ++i) row.push_back({float(random() % 7), all[i]});  // many ties
        sort_row(metric, row);
        return row;
    };
    for (std::int64_t i = 0; i < kRows; ++i) {
        std::vector<Entry> all = draw(before, 200);
        put(lists, i, all);
        for (int p = 0; p < 2; ++p) {
            const std::vector<Entry> row = draw(int(random() % (found_k + 1)), 150);
            put(found[p], i, row);
            for (const Entry& entry : row)
                if (entry.id >= partners[p].first && entry.id < partners[p].last)
                    all.push_back({entry.distance, std::int32_t(entry.id - partners[p].first + partners[p].begin)});
        }
        sort_row(metric, all);
        put(expected, i, all);
    }
    for (const bool swapped : {false, true}) {
        KnnGraph result = lists;
        std::int64_t entered = 0;
        for (const int p : {swapped ? 1 : 0, swapped ? 0 : 1})
            entered += fold(found[p], partners[p], k, result.ids(), result.distances(), 2);
        EXPECT_TRUE(std::equal(result.ids(), result.ids() + kRows * k, expected.ids()));
        EXPECT_TRUE(std::equal(result.distances(), result.distances() + kRows * k, expected.distances()));
        EXPECT_GT(entered, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Fold,
                         testing::Values(Case{Metric::L2, 10, 10, 10}, Case{Metric::L2, 10, 3, 10},
                                         Case{Metric::InnerProduct, 10, 10, 10}, Case{Metric::Cosine, 7, 0, 5},
                                         Case{Metric::L2, 1, 1, 1}, Case{Metric::L2, 1, 0, 1},
                                         Case{Metric::L1, 1024, 200, 64}, Case{Metric::InnerProduct, 33, 20, 40}));

TEST(FoldRows, NothingFromThePartnerChangesNothing) {
    KnnGraph lists(2, 3, Metric::L2), found(2, 3, Metric::L2);
    put(lists, 0, {{1, 5}, {2, 6}, {3, 7}});
    put(found, 0, {{0, 1}, {0, 2}, {0, 3}});  // of the shard itself
    put(found, 1, {});
    const KnnGraph before = lists;
    EXPECT_EQ(fold(found, {4, 8, 100}, 3, lists.ids(), lists.distances(), 0), 0);
    EXPECT_TRUE(std::equal(lists.ids(), lists.ids() + 6, before.ids()));
    put(found, 0, {{3, 4}});  // as near as the last, and of a larger id
    EXPECT_EQ(fold(found, {4, 8, 100}, 3, lists.ids(), lists.distances(), 0), 0);
    put(found, 0, {{2, 4}});
    EXPECT_EQ(fold(found, {4, 8, 100}, 3, lists.ids(), lists.distances(), 0), 1);
    EXPECT_EQ(lists.ids()[2], 100);
}

}  // namespace
}  // namespace gnnd::shards
