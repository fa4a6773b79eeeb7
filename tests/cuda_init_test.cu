// SPDX-License-Identifier: MIT
// Step 1 on every engine: distances of given and of random neighbours, windows of objects, pivots. Without a GPU all of
// it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "tests/cuda_engine.h"

namespace gnnd::cuda {
namespace {

class CudaInitTest : public CudaEngineTest {};
INSTANTIATE_TEST_SUITE_P(CudaKernel, CudaInitTest, testing::ValuesIn(kEngineCases), testing::PrintToStringParamName());

/// Random and given neighbours with their distances.
TEST_P(CudaInitTest, InitNeighborsComputesDistances) {
    const int width = 12, capacity = 15;
    std::vector<std::int32_t> graph(kN * width, -1);
    for (int i = 0; i < kN; ++i) {
        const auto some = some_ids(kN, 1 + random() % width, i, random);
        std::copy(some.begin(), some.end(), &graph[i * width]);
    }
    graph[0] = 0;  // itself: left out
    const OnDevice<std::int32_t> given(graph);
    for (const auto& [random_ones, ordered] :
         {std::pair{false, false}, std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
        SCOPED_TRACE(testing::Message() << "random " << random_ones << ", ordered " << ordered);
        const OnDevice<u64> queue(std::vector<u64>(kN * capacity, ~u64(0)));
        const OnDevice<u32> counts(std::vector<u32>(kN, 0));
        engine_for(space->packed, space->metric)
            .init_neighbors(points(),
                            {.candidates = {queue, counts, capacity},
                             .graph = random_ones ? nullptr : given.get(),
                             .width = width,
                             .first = 2,
                             .count = 10,
                             .init = Init::random,
                             .seed = 5,
                             .ordered = ordered},
                            nullptr);
        const auto entries = queue.read();
        EXPECT_EQ(counts.read(), std::vector<u32>(kN, 10));
        for (int i = 0; i < kN; ++i) {
            std::set<Entry> got;
            for (int j = 0; j < 10; ++j) {
                const u64 entry = entries[i * capacity + j];
                if (u32(entry) == kNoId) {
                    ASSERT_TRUE(random_ones || graph[i * width + 2 + j] == -1 || graph[i * width + 2 + j] == i);
                    continue;
                }
                if (!random_ones) ASSERT_EQ(int(u32(entry)), graph[i * width + 2 + j]);
                if (random_ones) ASSERT_TRUE(GetParam().pairs.count(u32(i), u32(entry)));
                got.insert({__builtin_bit_cast(float, u32(entry >> 32)), u32(entry)});
            }
            expect_distances(i, {got.begin(), got.end()}, ordered);
            const u32 partners = GetParam().pairs.partners(u32(i), kN);
            if (random_ones) ASSERT_GE(got.size(), std::min(partners, 5u));
        }
    }
}

/// Objects of a window meet, those of a merge only across its sets.
TEST_P(CudaInitTest, JoinWindowPutsTheNearest) {
    struct Case {
        const char* name;
        u32 border;
        bool shuffled;
        int take;
    };
    const int n = 1100, capacity = 20, at = 3;  // the last window is not full, whichever its length
    const Space many(space->packed, space->metric, n, space->d, random);
    const OnDevice<std::uint8_t> many_rows(many.rows);
    const OnDevice<u32> many_bias(many.bias);
    const Engine& engine = engine_for(space->packed, space->metric);
    for (const Case& c : {Case{"one set", 0, true, 8}, Case{"balanced", n / 2, true, 8}, Case{"1:9", n / 10, true, 6},
                          Case{"the first three", 3, true, 16}, Case{"the last three", n - 3, true, 8},
                          // By number: a window of the first set, one of a few of it and more than 256 others, one of
                          // the second set.
                          Case{"apart", kWideWindow + 9, false, 8}}) {
        SCOPED_TRACE(c.name);
        std::vector<u32> order(n);
        std::iota(order.begin(), order.end(), 0);
        if (c.shuffled) std::shuffle(order.begin(), order.end(), random);
        Points points = this->points();
        points.rows = many_rows;
        points.n = n;
        if (points.bias != nullptr) points.bias = many_bias;
        points.pairs = {c.border};
        const OnDevice<u32> by(order), counts(std::vector<u32>(n, 0));
        const OnDevice<u64> queue(std::vector<u64>(n * capacity, ~u64(0)));
        engine.join_window(points, {.order = by, .candidates = {queue, counts, capacity}, .at = at, .take = c.take},
                           nullptr);
        const auto entries = queue.read();
        EXPECT_EQ(counts.read(), std::vector<u32>(n, at + c.take));

        const int leaf = int(engine.window_size(points));
        const bool wide = leaf != kWindow;
        EXPECT_EQ(wide, engine.assign_to_pivots != nullptr && space->row_bytes <= kTileBytes && c.border != 0);
        std::vector<int> place(n);
        for (int i = 0; i < n; ++i) place[order[i]] = i;
        for (int i = 0; i < n; i += 3) {
            const u32 object = order[i];
            // Columns are the places in a window, or in a wide one the places among those of the same set there.
            std::vector<float> nearest[8], expected;
            const int window = i / leaf * leaf;
            for (int j = window, columns[2] = {}; j < std::min(window + leaf, n); ++j) {
                const int column = wide ? columns[order[j] < c.border]++ : j - window;
                if (j != i && points.pairs.count(object, order[j]))
                    nearest[column % 16 / 2].push_back(many.distance(int(object), int(order[j])));
            }
            for (std::vector<float>& part : nearest) {
                std::sort(part.begin(), part.end());
                if (part.size() > 2) part.resize(2);
                expected.insert(expected.end(), part.begin(), part.end());
            }
            std::sort(expected.begin(), expected.end());
            expected.resize(c.take, INFINITY);

            std::vector<float> got;
            std::set<u32> seen;
            for (int j = 0; j < capacity; ++j) {
                const u64 entry = entries[object * capacity + j];
                if (j < at || j >= at + c.take) {
                    ASSERT_EQ(entry, ~u64(0)) << j;
                    continue;
                }
                const u32 id = u32(entry);
                got.push_back(__builtin_bit_cast(float, u32(entry >> 32)));
                if (id == kNoId) {
                    ASSERT_EQ(got.back(), INFINITY);
                    continue;
                }
                ASSERT_TRUE(id < u32(n) && id != object && seen.insert(id).second) << id;
                ASSERT_TRUE(points.pairs.count(object, id));
                ASSERT_EQ(place[id] / leaf, i / leaf);
                ASSERT_EQ(got.back(), many.distance(int(object), int(id)));
            }
            ASSERT_EQ(got, expected) << object;
        }
    }
}

/// Every object goes to the nearest pivot of its node.
TEST_P(CudaInitTest, AssignToPivotsFindsTheNearest) {
    const Engine& engine = engine_for(space->packed, space->metric);
    if (engine.assign_to_pivots == nullptr || space->metric != Metric::L2) GTEST_SKIP() << "assigned by l2";
    std::vector<u32> order(kN);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const OnDevice<u32> by(order);
    for (const auto& [node_size, pivots] : {std::pair{kN, 7}, std::pair{kN, 200}, std::pair{256, 100}}) {
        const OnDevice<u32> keys(std::vector<u32>(kN, ~0u));
        engine.assign_to_pivots(
            points(), {.order = by, .node_size = node_size, .pivots = pivots, .seed = 11, .keys = keys}, nullptr);
        const auto got = keys.read();
        for (int i = 0; i < kN; ++i) {
            const int node = i / node_size, size = std::min(node_size, kN - node * node_size);
            const auto pivot_distance = [&](u32 t) {
                const u32 hash = mix(11 + mix(u32(node) * kMaxPivots + t));
                return space->distance(int(order[i]), int(order[node * node_size + scaled(hash, size)]));
            };
            float nearest = INFINITY;
            for (int t = 0; t < pivots; ++t) nearest = std::min(nearest, pivot_distance(t));
            ASSERT_EQ(int(got[i]) / pivots, node);
            ASSERT_EQ(pivot_distance(got[i] % pivots), nearest);
        }
    }
}

}  // namespace
}  // namespace gnnd::cuda
