// SPDX-License-Identifier: MIT
// Graphs as sparse matrices: one direction, either, both; cuts, distances, and every kind of refusal.
#include "gnnd/operations.h"

#include <gtest/gtest.h>

#include "gnnd/error.h"
#include "tests/operations.h"

namespace gnnd {
namespace {

using test::exact_graph;
using test::expect_valid;
using test::graph_for;
using test::graph_with_distances;
using test::naive_join;
using test::naive_neighbors;
using test::random_graph;
using test::same;
using test::Sparse;
using test::sparse_of;

/// All three matrices against their definitions, on one thread and on several.
void expect_by_definition(const KnnGraphView& graph, EdgeParams params) {
    SCOPED_TRACE(testing::Message() << "n " << graph.n << ", k " << graph.k << ", neighbors " << params.neighbors
                                    << ", radius " << params.radius.value_or(NAN) << ", " << name_of(params.values));
    const bool larger = is_similarity(graph.metric) && params.values == GraphValues::metric;
    const Sparse own = naive_neighbors(graph, params);
    const Sparse either = naive_join(own, [&](float a, float b) {
        if (std::isnan(b)) return a;
        return larger ? std::max(a, b) : std::min(a, b);
    });
    const Sparse both = naive_join(own, [&](float a, float b) {
        if (std::isnan(b)) return b;
        return larger ? std::max(a, b) : std::min(a, b);
    });
    CsrGraph first[3];
    for (const int threads : {1, 3}) {
        params.threads = threads;
        const CsrGraph made[3] = {neighbors_graph(graph, params), symmetric_graph(graph, params),
                                  mutual_graph(graph, params)};
        for (const CsrGraph& result : made) expect_valid(result, graph.n);
        if (threads > 1) {
            for (int g = 0; g < 3; ++g) EXPECT_TRUE(same(made[g], first[g])) << g << ", threads " << threads;
            continue;
        }
        EXPECT_EQ(sparse_of(made[0]), own);
        EXPECT_EQ(sparse_of(made[1]), either);
        EXPECT_EQ(sparse_of(made[2]), both);
        std::copy(std::begin(made), std::end(made), first);
    }
}

class OperationsTest : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(All, OperationsTest, testing::ValuesIn(test::kMetrics), test::metric_name);

TEST_P(OperationsTest, MatricesAreThoseOfTheDefinition) {
    for (const std::int64_t n : {2, 50, 3000})
        for (const int k : {1, 32, 65, 130}) {
            if (n * k > 100000) continue;
            const KnnGraph graph = graph_with_distances(GetParam(), n, k);
            const float middle = graph.distances_of(n / 2)[std::min<std::int64_t>(k, n - 1) / 2];
            for (const GraphValues values : {GraphValues::metric, GraphValues::distance}) {
                const float radius = values == GraphValues::metric ? middle : test::naive_distance(GetParam(), middle);
                expect_by_definition(graph, {0, values, {}, 0});
                expect_by_definition(graph, {0, values, radius, 0});
                expect_by_definition(graph, {(k + 1) / 2, values, radius, 0});
            }
        }
}

TEST_P(OperationsTest, TakesWhatNobodyBuilt) {
    for (const std::int64_t n : {5, 40, 5000})
        for (const int k : {3, 20})
            for (const bool padded : {false, true})
                expect_by_definition(random_graph(GetParam(), n, k, unsigned(n), padded), {});
}

TEST_P(OperationsTest, ARadiusMayBeAnything) {
    const float inf = std::numeric_limits<float>::infinity();
    const KnnGraph graph = graph_for(GetParam(), 200, 10);
    for (const float radius : {-inf, -1.f, 0.f, 1e-30f, 1e30f, inf}) expect_by_definition(graph, {0, {}, radius, 0});
    const float all = is_similarity(GetParam()) ? -inf : inf;
    EXPECT_EQ(neighbors_graph(graph, {0, {}, all, 0}).entries(), 2000);
    EXPECT_EQ(full_rows(graph, {0, {}, all, 0}), 200);
    EXPECT_EQ(neighbors_graph(graph, {0, {}, -all, 0}).entries(), 0);
    EXPECT_EQ(full_rows(graph, {0, {}, -all, 0}), 0);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, NAN, 0}), InvalidArgument);
    EXPECT_THROW(full_rows(graph, {0, {}, NAN, 0}), InvalidArgument);
}

TEST_P(OperationsTest, RowsThatTheRadiusDoesNotCutAreCounted) {
    const KnnGraph graph = graph_with_distances(GetParam(), 300, 12);
    for (const int neighbors : {0, 1, 5}) {
        const int last = (neighbors > 0 ? neighbors : 12) - 1;
        const float radius = graph.distances_of(7)[last];
        std::int64_t full = 0;
        for (std::int64_t i = 0; i < 300; ++i) {
            const float value = graph.distances_of(i)[last];
            full += is_similarity(GetParam()) ? value >= radius : value <= radius;
        }
        EXPECT_GT(full, 0);
        EXPECT_LT(full, 300);
        for (const int threads : {1, 3}) EXPECT_EQ(full_rows(graph, {neighbors, {}, radius, threads}), full);
    }
    EXPECT_EQ(full_rows(graph_for(GetParam(), 5, 12), {}), 5) << "padding is no neighbour that the radius cuts";
}

/// Hubs, copies, clusters: rows of very different lengths, and many equal values.
TEST_P(OperationsTest, HardSets) {
    const std::int64_t n = test::sized(1500);
    for (const test::HardSet& set : test::hard_sets()) {
        SCOPED_TRACE(set.name);
        test::Vectors vectors = test::vectors_of(set, n, DType::f32, GetParam() == Metric::ChiSquare);
        if (GetParam() == Metric::Cosine)
            for (std::int64_t i = 0; i < n; ++i) vectors.set(i, 0, 1);
        expect_by_definition(exact_graph(vectors, GetParam(), 20), {});
    }
}

TEST_P(OperationsTest, NoObjectsAndOne) {
    const KnnGraphView none{0, 0, GetParam(), nullptr, nullptr};
    for (const auto& operation : {neighbors_graph, symmetric_graph, mutual_graph}) {
        expect_valid(operation(none, {}, {}, nullptr), 0);
        expect_valid(operation(KnnGraph(), {}, {}, nullptr), 0);
        const CsrGraph one = operation(KnnGraph(1, 4, GetParam()), {0, GraphValues::distance, {}, 0}, {}, nullptr);
        expect_valid(one, 1);
        EXPECT_EQ(one.entries(), 0);
    }
    EXPECT_EQ(full_rows(none, {}), 0);
    EXPECT_EQ(full_rows(KnnGraph(1, 4, GetParam()), {}), 0);
}

/// Returns the message of the InvalidArgument that a call throws.
template <class F>
std::string refusal(const F& f) {
    try {
        f();
    } catch (const InvalidArgument& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST_P(OperationsTest, MatricesGoWhereThereIsRoom) {
    for (const std::int64_t n : {0, 1, 500}) {
        const KnnGraph graph = n == 0   ? KnnGraph()
                               : n == 1 ? KnnGraph(1, 3, GetParam())
                                        : random_graph(GetParam(), n, 9, 4, true);
        const CsrGraph expected = symmetric_graph(graph);
        CsrGraph there;
        const CsrRoom room = [&](std::int64_t rows, std::int64_t entries) {
            there = {rows, Array<std::int64_t>(std::size_t(rows) + 1), Array<std::int32_t>(std::size_t(entries)),
                     Array<float>(std::size_t(entries))};
            return CsrSpan{there.indptr.data(), there.indices.data(), there.values.data()};
        };
        const CsrGraph returned = symmetric_graph(graph, {0, {}, {}, 0, {}, room});
        EXPECT_TRUE(same(there, expected)) << n;
        EXPECT_EQ(returned.n, n);
        EXPECT_TRUE(returned.indices.empty() && returned.values.empty() && returned.entries() == 0);
    }
}

TEST_P(OperationsTest, BadRowsAreNamed) {
    const KnnGraph good = random_graph(GetParam(), 5000, 8, 3, false);
    const float far = is_similarity(GetParam()) ? -100.f : 100.f;
    const std::vector<std::pair<std::string, std::function<void(std::int32_t*, float*)>>> faults{
        {"id 5000 is outside of [0, 5000)", [](auto* ids, float*) { ids[3] = 5000; }},
        {"id -2 is outside of [0, 5000)", [](auto* ids, float*) { ids[0] = -2; }},
        {"holds itself", [](auto* ids, float*) { ids[7] = 4321; }},
        {"-1 before id", [](auto* ids, float*) { ids[2] = -1; }},
        {"the value of entry 0 is NaN", [](auto*, float* values) { values[0] = NAN; }},
        {"the value of entry 7 is NaN", [](auto*, float* values) { values[7] = NAN; }},
        {"entry 5 is nearer than the one before it", [&](auto*, float* values) { values[4] = far; }},
        {"holds an id twice", [](auto* ids, float*) { ids[1] = ids[6]; }},
    };
    for (const auto& [text, spoil] : faults)
        for (const int threads : {1, 4}) {
            KnnGraph bad = good;
            spoil(bad.ids() + 4321 * 8, bad.distances() + 4321 * 8);
            for (const auto& operation : {neighbors_graph, symmetric_graph, mutual_graph}) {
                const std::string told = refusal([&] { operation(bad, {0, {}, {}, threads}, {}, nullptr); });
                EXPECT_NE(told.find("row 4321"), std::string::npos) << told;
                EXPECT_NE(told.find(text), std::string::npos) << told;
            }
        }
    // Entries behind the first ones asked for are not looked at.
    KnnGraph bad = good;
    bad.ids()[4321 * 8 + 7] = 9999;
    EXPECT_NO_THROW(symmetric_graph(bad, {7, {}, {}, 0}));
}

TEST_P(OperationsTest, BadParametersAreNamed) {
    const KnnGraph graph = graph_for(GetParam(), 20, 8);
    EXPECT_NE(refusal([&] {
                  symmetric_graph(graph, {9, {}, {}, 0});
              }).find("neighbors = 9, allowed are 1 to the"),
              std::string::npos);
    EXPECT_THROW(symmetric_graph(graph, {-1, {}, {}, 0}), InvalidArgument);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, -1}), InvalidArgument);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 5000}), InvalidArgument);
    EXPECT_THROW(symmetric_graph(graph, {0, GraphValues(2), {}, 0}), InvalidArgument);
    KnnGraphView view = graph;
    view.n = -1;
    EXPECT_THROW(mutual_graph(view), InvalidArgument);
    view = graph.view(), view.k = 0;
    EXPECT_THROW(mutual_graph(view), InvalidArgument);
    view = graph.view(), view.k = 70000;
    EXPECT_THROW(mutual_graph(view), InvalidArgument);
    view = graph.view(), view.ids = nullptr;
    EXPECT_THROW(mutual_graph(view), InvalidArgument);
    view = graph.view(), view.distances = nullptr;
    EXPECT_THROW(mutual_graph(view), InvalidArgument);
    view = graph.view(), view.metric = Metric(77);
    EXPECT_THROW(mutual_graph(view), InvalidArgument);
}

TEST(Operations, TheNearerValueOfAPairCounts) {
    for (const bool larger : {false, true}) {
        KnnGraph graph(2, 1, larger ? Metric::InnerProduct : Metric::L2);
        graph.ids()[0] = 1, graph.ids()[1] = 0;
        graph.distances()[0] = 3, graph.distances()[1] = 5;
        const float expected = larger ? 5 : 3;
        for (const auto& operation : {symmetric_graph, mutual_graph}) {
            const CsrGraph joined = operation(graph, {}, {}, nullptr);
            EXPECT_EQ(joined.values, (Array<float>{expected, expected}));
        }
    }
}

TEST(Operations, ARadiusIsComparedWithWhatComesOut) {
    KnnGraph graph(2, 1, Metric::L2);
    graph.ids()[0] = 1, graph.ids()[1] = 0;
    graph.distances()[0] = graph.distances()[1] = 9;
    EXPECT_EQ(mutual_graph(graph, {0, GraphValues::metric, 4.f, 0}).entries(), 0);
    EXPECT_EQ(mutual_graph(graph, {0, GraphValues::distance, 4.f, 0}).entries(), 2);
    EXPECT_EQ(mutual_graph(graph, {0, GraphValues::distance, 3.f, 0}).values[0], 3.f) << "the radius itself counts";
}

TEST(Operations, DistancesOfValues) {
    const float inf = std::numeric_limits<float>::infinity();
    const auto distances = [](Metric metric, std::vector<float> values) {
        true_distances(metric, values.data(), std::ssize(values), values.data(), 2);
        return values;
    };
    EXPECT_EQ(distances(Metric::L2, {0, 4, 2.25f, inf}), (std::vector<float>{0, 2, 1.5f, inf}));
    for (const Metric metric : {Metric::Cosine, Metric::InnerProduct})
        EXPECT_EQ(distances(metric, {1, 1.0000001f, 0.25f, 0, -1, -inf}), (std::vector<float>{0, 0, 0.75f, 1, 2, inf}));
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare})
        EXPECT_EQ(distances(metric, {0, 7.5f, inf}), (std::vector<float>{0, 7.5f, inf}));
    EXPECT_TRUE(distances(Metric::L2, {}).empty());
    EXPECT_NE(refusal([&] { distances(Metric::L2, {1, -0.5f, -1}); }).find("value 1: -0.5"), std::string::npos);
    EXPECT_NE(refusal([&] {
                  distances(Metric::InnerProduct, {1, 1.5f});
              }).find("no similarity of vectors of length 1"),
              std::string::npos);
    for (const Metric metric : test::kMetrics) EXPECT_THROW(distances(metric, {0, NAN}), InvalidArgument);
    EXPECT_THROW(distances(Metric(99), {0}), InvalidArgument);
    KnnGraph lengths = random_graph(Metric::InnerProduct, 50, 4, 1, false);
    for (int i = 0; i < 200; ++i) lengths.distances()[i] += 3;
    EXPECT_NE(refusal([&] {
                  symmetric_graph(lengths, {0, GraphValues::distance, {}, 0});
              }).find("graph row 0, entry 0"),
              std::string::npos);
    EXPECT_NO_THROW(symmetric_graph(lengths));
}

TEST(Operations, NamesOfValues) {
    for (const GraphValues values : {GraphValues::metric, GraphValues::distance})
        EXPECT_EQ(parse_graph_values(name_of(values)), values);
    EXPECT_NE(refusal([] { parse_graph_values("squared"); }).find("known are metric, distance"), std::string::npos);
}

TEST(Operations, ADeviceThatIsNotThere) {
    const KnnGraph graph = graph_for(Metric::L2, 20, 4);
    EdgeParams params;
    params.device = {Device::Kind::cuda, 4000};
    EXPECT_THROW(symmetric_graph(graph, params), Unavailable);
    EXPECT_THROW(connected_components(graph, params), Unavailable);
    params.device.index = -1;
    EXPECT_THROW(symmetric_graph(graph, params), InvalidArgument);
    params.device = {Device::Kind::cpu, 0};
    EXPECT_TRUE(same(symmetric_graph(graph, params), symmetric_graph(graph)));
}

TEST(Operations, AnInterruptEndsThem) {
    const KnnGraph graph = random_graph(Metric::L2, 60000, 8, 1, false);
    for (const auto& operation : {neighbors_graph, symmetric_graph, mutual_graph}) {
        int calls = 0;
        const auto count = [&] { return ++calls, false; };
        operation(graph, {0, {}, {}, 1}, {{}, count, {}}, nullptr);
        EXPECT_GT(calls, 20);
        for (const int last : {1, calls / 4, calls / 2, calls - 1, calls}) {
            int asked = 0;
            const auto stop = [&] { return ++asked >= last; };
            for (const int threads : {1, 2}) {
                asked = 0;
                if (threads == 1 || last == 1) {
                    EXPECT_THROW(operation(graph, {0, {}, {}, threads}, {{}, stop, {}}, nullptr), Interrupted) << last;
                }
            }
        }
    }
}

}  // namespace
}  // namespace gnnd
