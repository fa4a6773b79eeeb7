// SPDX-License-Identifier: MIT
#include "gnnd/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "gnnd/error.h"
#include "tests/failing_memory.h"

namespace gnnd {
namespace {

/// Three objects on a line, k = 3: one entry of padding in each row.
KnnGraph line(Metric metric = Metric::L1) {
    KnnGraph graph(3, 3, metric);
    const float sign = is_similarity(metric) ? -1 : 1;
    const auto put = [&](int row, int j, int id, float distance) {
        graph.ids()[row * 3 + j] = id;
        graph.distances()[row * 3 + j] = sign * distance;
    };
    put(0, 0, 1, 1), put(0, 1, 2, 2);
    put(1, 0, 0, 1), put(1, 1, 2, 1);
    put(2, 0, 1, 1), put(2, 1, 0, 2);
    return graph;
}

TEST(KnnGraph, StartsAsPadding) {
    const KnnGraph graph(2, 5, Metric::InnerProduct);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(graph.ids()[i], -1);
        EXPECT_EQ(graph.distances()[i], -INFINITY);
    }
    EXPECT_EQ(KnnGraph(1, 1, Metric::L2).distances()[0], INFINITY);
}

TEST(KnnGraph, RefusesImpossibleShapes) {
    EXPECT_THROW(KnnGraph(-1, 1, Metric::L2), InvalidArgument);
    EXPECT_THROW(KnnGraph(std::int64_t(1) << 31, 1, Metric::L2), InvalidArgument);
    EXPECT_THROW(KnnGraph(1, 0, Metric::L2), InvalidArgument);
    EXPECT_THROW(KnnGraph(1, 65536, Metric::L2), InvalidArgument);
}

TEST(KnnGraph, RowsComeAndGo) {
    KnnGraph graph = line(Metric::InnerProduct);
    const KnnGraph before = graph;
    graph.resize(5);
    EXPECT_EQ(graph.n(), 5);
    EXPECT_TRUE(std::equal(before.ids(), before.ids() + 9, graph.ids()));
    EXPECT_TRUE(std::equal(before.distances(), before.distances() + 9, graph.distances()));
    for (int i = 9; i < 15; ++i) {
        EXPECT_EQ(graph.ids()[i], -1);
        EXPECT_EQ(graph.distances()[i], -INFINITY);
    }
    graph.ids()[9] = 1;
    graph.resize(3);
    graph.resize(4);
    EXPECT_EQ(graph.ids()[9], -1);
    graph.reserve(100);
    const std::int32_t* const ids = graph.ids();
    const float* const distances = graph.distances();
    graph.resize(100);
    EXPECT_EQ(graph.ids(), ids) << "nothing is copied";
    EXPECT_EQ(graph.distances(), distances);
    graph.resize(4);
    EXPECT_THROW(graph.resize(-1), InvalidArgument);
    EXPECT_THROW(graph.resize(std::int64_t(1) << 31), InvalidArgument);
    EXPECT_EQ(graph.n(), 4);
    EXPECT_THROW(KnnGraph().resize(1), InvalidArgument);
}

TEST(KnnGraph, GrowsWithoutRoomWhereMemoryIsShort) {
    if (!test::FailingMemory::possible()) GTEST_SKIP() << "the sanitizers have operator new to themselves";
    constexpr std::int64_t kRows = 1 << 16, kColumns = 16;
    for (int roomy = 0; roomy < 3; ++roomy) {
        KnnGraph graph(2, kColumns, Metric::L2);
        graph.ids()[0] = 1;
        {
            // Of the two arrays so many get room for half as many rows more.
            const test::FailingMemory failing(roomy, kRows * kColumns * sizeof(float) * 3 / 2);
            EXPECT_NO_THROW(graph.resize(kRows));
            EXPECT_EQ(failing.has_failed(), roomy < 2);
        }
        ASSERT_EQ(graph.n(), kRows);
        EXPECT_EQ(graph.ids()[0], 1);
        EXPECT_EQ(graph.ids()[kRows * kColumns - 1], -1);
    }
}

TEST(CheckStructure, AcceptsValidGraphs) {
    EXPECT_NO_THROW(check_structure(line()));
    EXPECT_NO_THROW(check_structure(line(Metric::InnerProduct)));
    EXPECT_NO_THROW(check_structure(KnnGraph(1, 4, Metric::L2)));
}

TEST(CheckStructure, NamesTheRow) {
    const std::function<void(KnnGraph&)> faults[] = {
        [](KnnGraph& g) { g.ids()[4] = 3; },                        // out of range
        [](KnnGraph& g) { g.ids()[4] = -1; },                       // padding too early
        [](KnnGraph& g) { g.ids()[4] = 1; },                        // self
        [](KnnGraph& g) { g.ids()[4] = 0; },                        // twice
        [](KnnGraph& g) { std::swap(g.ids()[3], g.ids()[4]); },     // ids of equal distance
        [](KnnGraph& g) { g.distances()[4] = 0.5f; },               // distances
        [](KnnGraph& g) { g.distances()[4] = std::nanf(""); },      // NaN
        [](KnnGraph& g) { g.ids()[5] = 0; },                        // no padding
        [](KnnGraph& g) { g.distances()[5] = -INFINITY; },          // padding of the other sign
        [](KnnGraph& g) { g.ids()[4] = 0, g.distances()[4] = 3; },  // twice, in order
    };
    for (std::size_t i = 0; i < std::size(faults); ++i) {
        KnnGraph graph = line();
        faults[i](graph);
        try {
            check_structure(graph);
            ADD_FAILURE() << "fault " << i << " was accepted";
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find("row 1"), std::string::npos) << e.what();
        }
    }
}

}  // namespace
}  // namespace gnnd
