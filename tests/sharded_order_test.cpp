// SPDX-License-Identifier: MIT
// The order of a base whose plan is `near`, and the merges of its shards that are chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/near.h"
#include "gnnd/shards/order.h"
#include "tests/hard_sets.h"
#include "tests/near.h"

namespace gnnd::test {
namespace {

/// The order of the base as build_sharded() makes it.
class Ordering : public Near {
  protected:
    /// Checks that vectors and order belong together, and gives the shard of each row.
    std::vector<int> shards_of_rows(int count) const {
        shards::Manifest manifest;
        manifest.base = shards::BaseRecord::of(*base_);
        manifest.plan = MergePlan::near;
        manifest.shards.resize(std::size_t(count));
        const std::string vectors_path = dir_.file("ordered.fbin"), order_path = dir_.file("order.ibin");
        order_base(*base_, manifest, params_, vectors_path, order_path, {});
        const io::VectorFile vectors(vectors_path), order(order_path);
        std::vector<int> shards(std::size_t(base_->n()), -1);
        std::vector<float> expected(std::size_t(base_->d())), found(expected);
        std::int32_t row = 0, before = -1;
        for (std::int64_t place = 0; place < base_->n(); ++place) {
            const int shard = manifest.shard_of(place);
            EXPECT_TRUE(manifest.begin(shard) <= place && place < manifest.begin(shard + 1));
            order.read(place, 1, &row);
            if (place > manifest.begin(shard)) {
                EXPECT_GT(row, before) << "in the order of the base within a shard";
            }
            before = row;
            EXPECT_EQ(std::exchange(shards[std::size_t(row)], shard), -1) << "twice";
            base_->read(row, 1, expected.data());
            vectors.read(place, 1, found.data());
            EXPECT_EQ(expected, found);
        }
        return shards;
    }
};

TEST_F(Ordering, PutsTogetherWhatIsNear) {
    make_line(2000);
    const std::vector<int> shards = shards_of_rows(10);
    std::vector<std::pair<float, int>> line;
    for (std::int64_t i = 0; i < 2000; ++i) {
        std::vector<float> row(2);
        base_->read(i, 1, row.data());
        line.emplace_back(row[0], shards[std::size_t(i)]);
    }
    std::sort(line.begin(), line.end());
    int changes = 0;
    for (std::size_t i = 1; i < line.size(); ++i) changes += line[i].second != line[i - 1].second;
    EXPECT_LE(changes, 9 * 16) << "of each border a cell, of 16 objects, may be mixed";
}

TEST_F(Ordering, CutsShardsOfOneSizeWhateverTheSet) {
    const auto fill = [&](std::int64_t n, const auto& value) {
        Vectors vectors(n, 3, DType::f32);
        for (std::int64_t i = 0; i < n; ++i)
            for (int c = 0; c < 3; ++c) vectors.set(i, c, value(i, c));
        make_base(vectors.view());
    };
    std::mt19937 random(7);
    for (const auto& [n, count] : {std::pair{500, 7}, {64, 64}, {3, 2}, {1001, 10}}) {
        SCOPED_TRACE(testing::Message() << n << " in " << count);
        fill(n, [](std::int64_t, int) { return 1.f; });  // equal rows
        shards_of_rows(count);
        fill(n, [](std::int64_t i, int) { return i % 10 == 0 ? float(i) : 0.f; });  // nine of ten are equal
        shards_of_rows(count);
        fill(n, [&](std::int64_t i, int) { return float(random() % 1000) * (i < n / 20 ? 1e6f : 1e-3f); });
        shards_of_rows(count);
    }
}

TEST_F(Ordering, NamesTheBadRowOfTheBase) {
    Vectors vectors(100, 3, DType::f32);
    vectors.set(77, 1, NAN);
    make_base(vectors.view());
    EXPECT_EQ(message_of<InvalidArgument>([&] { build(near(4)); }), "vector 77 holds NaN");
}

TEST(NearMerges, ThatPromiseTheMostComeFirst) {
    using shards::Task;
    shards::PairCounts counts(4);
    for (const auto& [a, b, times] : {std::tuple{0, 0, 90}, {1, 1, 90}, {3, 1, 7}, {1, 3, 5}, {2, 0, 6}, {0, 1, 2}})
        for (int i = 0; i < times; ++i) counts.add(a, b);
    EXPECT_EQ(counts.of(1, 3), 12);
    EXPECT_EQ(counts.inside(), 180);
    EXPECT_EQ(counts.sum(), 200);
    const auto merge = [](int a, int b) { return Task{Task::Kind::merge, a, b}; };
    std::vector<Task> left = counts.ranked();
    EXPECT_EQ(left, (std::vector<Task>{merge(1, 3), merge(0, 2), merge(0, 1), merge(0, 3), merge(1, 2), merge(2, 3)}));
    std::int64_t within = counts.inside();
    // Of the neighbours within reach all were found: to 0.95 there are 10 missing, which the first pair brings.
    EXPECT_EQ(choose_merges(left, counts, within, 0.9, 0.95), (std::vector<Task>{merge(1, 3)}));
    EXPECT_EQ(within, 192);
    EXPECT_EQ(left.size(), 5u);
    // One of a hundred within reach was not found, so that more must come within reach than are asked for.
    EXPECT_EQ(choose_merges(left, counts, within, 0.96 * 0.99, 0.985), (std::vector<Task>{merge(0, 2), merge(0, 1)}));
    // A recall that is out of reach takes all merges.
    EXPECT_EQ(choose_merges(left, counts, within, 0.5, 0.99).size(), 3u);
    EXPECT_TRUE(left.empty());
}

TEST(NearMerges, GoOnFromWhatWasMergedUntilItIsEnough) {
    using shards::Task;
    shards::PairCounts borders(3), truth(3);
    for (const auto& [a, b, times] : {std::tuple{0, 0, 80}, {0, 1, 10}, {1, 2, 10}})
        for (int i = 0; i < times; ++i) truth.add(a, b);
    borders.add(1, 2);
    borders = shards::PairCounts(3, borders.counts());  // as another process knows them
    const auto merge = [](int a, int b) { return Task{Task::Kind::merge, a, b}; };
    const auto recall = [](double value) { return RecallEstimate{value, value, value, 10, 10}; };
    using Merges = std::vector<Task>;
    const auto next = [&](const Merges& merged, double value, float asked, int k = 10) {
        shards::Manifest manifest;
        manifest.base.n = 60;
        manifest.shards.resize(3);
        manifest.params.k = k;
        manifest.params.recall = asked;
        return next_merges(manifest, borders, truth, merged, recall(value));
    };
    EXPECT_EQ(next({}, 0.8, 0.9f), Merges{merge(1, 2)});
    // What was merged is not chosen again, and what it brought is within reach.
    EXPECT_EQ(next({merge(1, 2)}, 0.9, 0.95f), Merges{merge(0, 1)});
    EXPECT_EQ(next({merge(1, 2)}, 0.96, 0.95f), Merges{});
    EXPECT_EQ(next({merge(1, 2), merge(0, 1), merge(0, 2)}, 0.5, 0.9f), Merges{});
    // A shard of 20 objects has 19 neighbours for each of them, two have 39.
    EXPECT_EQ(next({}, 1, 0.9f, 19), Merges{});
    EXPECT_EQ(next({}, 1, 0.9f, 20), (Merges{merge(1, 2), merge(0, 1)}));
    EXPECT_EQ(next({merge(0, 2)}, 1, 0.9f, 39), Merges{merge(1, 2)});
    EXPECT_EQ(next({merge(0, 2)}, 1, 0.9f, 40).size(), 2u);
    EXPECT_EQ(next({}, 1, 0.9f, 100).size(), 3u);
    EXPECT_THROW(shards::PairCounts(3, std::vector<std::int64_t>(8)), InvalidArgument);
}

TEST(Partition, IsKnownByItsPlanes) {
    Vectors vectors(300, 3, DType::f32);
    std::mt19937 random(5);
    for (std::int64_t i = 0; i < 300; ++i)
        for (int c = 0; c < 3; ++c) vectors.set(i, c, float(random() % 1000));
    const cpu::Team team{2, nullptr};
    const shards::Partition made(vectors.view(), Metric::Cosine, 4, 1, team);
    const shards::Partition again(3, Metric::Cosine, made.planes());
    ASSERT_EQ(again.cells(), 16);
    std::vector<std::uint16_t> cells(300), others(300);
    made.find(vectors.view(), cells.data(), team);
    again.find(vectors.view(), others.data(), team);
    EXPECT_EQ(cells, others);
    EXPECT_EQ(shards::Partition(3, Metric::L2, {}).cells(), 1);
    EXPECT_THROW(shards::Partition(3, Metric::L2, std::vector<float>(8)), InvalidArgument);
    EXPECT_THROW(shards::Partition(3, Metric::L2, std::vector<float>(5)), InvalidArgument);
}

/// Each batch is expected to be enough, and never is: of a ring of shards that share with the next ones only.
TEST(NearMerges, AreNotMuchMoreThanNeededHoweverManyShards) {
    for (const int shards : {2, 3, 33, 64, 256, 1024}) {
        SCOPED_TRACE(shards);
        shards::PairCounts counts(shards);
        for (int a = 0; a < shards; ++a)
            for (int i = 0; i < 1000; ++i) counts.add(a, i < 900 ? a : (a + 1) % shards);
        std::vector<shards::Task> left = counts.ranked();
        const std::size_t pairs = left.size();
        std::int64_t within = counts.inside();
        std::size_t merges = 0, batches = 0;
        while (merges < std::min(pairs, std::size_t(4 * shards))) {
            const std::size_t chosen = choose_merges(left, counts, within, 1, 0.5).size();
            ASSERT_GE(chosen, 1u);
            ASSERT_LE(chosen, std::max<std::size_t>(std::max(1, shards / 2), merges / 4));
            merges += chosen;
            ++batches;
        }
        EXPECT_EQ(left.size(), pairs - merges);
        EXPECT_LE(batches, 80u);
    }
}

}  // namespace
}  // namespace gnnd::test
