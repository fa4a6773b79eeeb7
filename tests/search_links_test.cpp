// SPDX-License-Identifier: MIT
// search_links() on the CPU: the three steps as they are written down, and every kind of refusal.
#include "gnnd/search_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "gnnd/error.h"
#include "tests/links.h"

namespace gnnd {
namespace {

using test::exact_graph;
using test::kCpu;
using test::links_of;
using test::random_vectors;
using test::Vectors;
using test::vectors_for;

using Rows = std::vector<std::vector<std::int32_t>>;

/// The metric's value of every pair, smaller is nearer.
std::vector<float> all_pairs(const VectorView& vectors, Metric metric) {
    const std::int64_t n = vectors.n;
    std::vector<std::int32_t> a(n * n), b(n * n);
    for (std::int64_t i = 0; i < n * n; ++i) a[i] = std::int32_t(i / n), b[i] = std::int32_t(i % n);
    std::vector<float> values(n * n);
    pair_distances(vectors, metric, a.data(), b.data(), n * n, values.data());
    if (is_similarity(metric))
        for (float& value : values) value = -value;
    return values;
}

bool has(const std::vector<std::int32_t>& row, std::int32_t id) {
    return std::find(row.begin(), row.end(), id) != row.end();
}

/// Step 1 by definition.
Rows naive_pruned(const std::vector<float>& pairs, const KnnGraphView& graph, int degree) {
    const std::int64_t n = graph.n;
    Rows rows(n);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < std::min<std::int64_t>(graph.k, 128) && int(rows[i].size()) < degree; ++j) {
            const std::int32_t c = graph.ids_of(i)[j];
            if (c < 0 || c == i || has(rows[i], c)) continue;
            bool linked = true;
            for (const std::int32_t l : rows[i]) linked &= pairs[l * n + c] > pairs[i * n + c];
            if (linked) rows[i].push_back(c);
        }
    return rows;
}

/// All steps by definition, the last one where `fill` is true.
std::vector<std::int32_t> naive_links(const std::vector<float>& pairs, const KnnGraphView& graph, int degree,
                                      bool fill) {
    const std::int64_t n = graph.n;
    const Rows chosen = naive_pruned(pairs, graph, degree);
    Rows rows = chosen;
    for (int j = 0; j < degree; ++j)
        for (std::int64_t i = 0; i < n; ++i)
            if (j < int(chosen[i].size())) {
                auto& row = rows[chosen[i][j]];
                if (int(row.size()) < degree && !has(row, std::int32_t(i))) row.push_back(std::int32_t(i));
            }
    std::vector<std::int32_t> links(n * degree, -1);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; fill && j < graph.k && int(rows[i].size()) < degree; ++j)
            if (const std::int32_t id = graph.ids_of(i)[j]; id >= 0 && id != i && !has(rows[i], id))
                rows[i].push_back(id);
        std::copy(rows[i].begin(), rows[i].end(), links.begin() + i * degree);
    }
    return links;
}

void expect_by_definition(const VectorView& vectors, const std::vector<float>& pairs, const KnnGraphView& graph,
                          int degree) {
    SCOPED_TRACE(testing::Message() << "n " << graph.n << ", k " << graph.k << ", degree " << degree);
    for (const bool fill : {true, false}) {
        const auto expected = naive_links(pairs, graph, degree, fill);
        for (const int threads : {1, 2})
            EXPECT_EQ(links_of(vectors, graph, {degree, kCpu, threads, fill}), expected) << threads << ", " << fill;
    }
}

struct Case {
    Metric metric;
    DType dtype;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << name_of(c.metric) << '_' << name_of(c.dtype);
    }
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const Metric metric : test::kMetrics)
        for (const DType dtype : test::kDTypes) cases.push_back({metric, dtype});
    return cases;
}

class SearchLinksTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, SearchLinksTest, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

TEST_P(SearchLinksTest, AreThoseOfTheDefinition) {
    const auto [metric, dtype] = GetParam();
    const Vectors vectors = vectors_for(metric, 300, 20, dtype);
    const auto pairs = all_pairs(vectors, metric);
    for (const int k : {1, 10, 64, 200}) {
        const KnnGraph graph = exact_graph(vectors, metric, k);
        for (const int degree : {1, 16, 64, 128}) expect_by_definition(vectors, pairs, graph, degree);
    }
}

TEST_P(SearchLinksTest, TakePaddedRows) {
    const auto [metric, dtype] = GetParam();
    for (const std::int64_t n : {2, 3, 20}) {
        const Vectors vectors = vectors_for(metric, n, 130, dtype);
        const auto pairs = all_pairs(vectors, metric);
        for (const int degree : {1, 2, 32, kMaxDegree})
            expect_by_definition(vectors, pairs, exact_graph(vectors, metric, 30), degree);
    }
}

TEST_P(SearchLinksTest, PrunesSomeRows) {
    const auto [metric, dtype] = GetParam();
    const Vectors vectors = vectors_for(metric, 300, 20, dtype);
    const KnnGraph graph = exact_graph(vectors, metric, 40);
    for (const int degree : {1, 6, 64}) {
        const Rows expected = naive_pruned(all_pairs(vectors, metric), graph, degree);
        const std::vector<std::int32_t> objects{299, 0, 17, 17, 120};
        std::vector<std::int32_t> links(objects.size() * degree, -7);
        prune_rows(vectors, graph, objects.data(), std::int64_t(objects.size()), {degree, kCpu, 2}, links.data());
        for (std::size_t i = 0; i < objects.size(); ++i) {
            std::vector<std::int32_t> row = expected[objects[i]];
            row.resize(degree, -1);
            EXPECT_EQ(row, std::vector(links.begin() + std::int64_t(i) * degree,
                                       links.begin() + std::int64_t(i + 1) * degree))
                << "object " << objects[i] << ", degree " << degree;
        }
    }
}

TEST(SearchLinks, RefuseRowsThatAreNotThere) {
    const Vectors vectors = random_vectors(30, 4, DType::f32);
    KnnGraph graph = exact_graph(vectors, Metric::L2, 5);
    const std::vector<std::int32_t> objects{3, 30}, good{3};
    std::vector<std::int32_t> links(64);
    const auto prune = [&](const std::vector<std::int32_t>& which, std::int64_t count) {
        prune_rows(vectors, graph, which.data(), count, {32, kCpu, 1}, links.data());
    };
    EXPECT_THROW(prune(objects, 2), InvalidArgument);
    EXPECT_THROW(prune(good, -1), InvalidArgument);
    EXPECT_NO_THROW(prune(good, 0));
    graph.ids()[3 * 5 + 2] = 30;
    EXPECT_THROW(prune(good, 1), InvalidArgument);
}

TEST(SearchLinks, OfEqualVectorsOneIsEnough) {
    for (const DType dtype : {DType::f32, DType::u8}) {
        Vectors vectors = random_vectors(600, 8, dtype);
        for (int i = 0; i < 600; ++i)
            for (int c = 0; c < 8; ++c) vectors.set(i, c, float(i % 40 * (c + 1) % 23 + i % 40));
        const KnnGraph graph = exact_graph(vectors, Metric::L2, 50);
        expect_by_definition(vectors, all_pairs(vectors, Metric::L2), graph, 16);
        // Fourteen others are equal to the first; its own choice is one of them, the last of the row differ.
        const auto links = links_of(vectors, graph, {64, kCpu, 1});
        EXPECT_EQ(links[0], graph.ids()[0]);
        EXPECT_NE(links[1], -1);
    }
}

TEST(SearchLinks, PassOverTheObjectItselfAndRepetitions) {
    const Vectors vectors = random_vectors(200, 8, DType::f32);
    for (const Metric metric : {Metric::L2, Metric::InnerProduct}) {
        const KnnGraph exact = exact_graph(vectors, metric, 20);
        KnnGraph graph(200, 40, metric);
        for (std::int64_t i = 0; i < 200; ++i)
            for (int j = 0; j < 40; ++j) {
                graph.ids()[i * 40 + j] = j % 7 == 3 ? std::int32_t(i) : j % 11 == 5 ? -1 : exact.ids_of(i)[j / 2];
                graph.distances()[i * 40 + j] = exact.distances_of(i)[j / 2];
            }
        expect_by_definition(vectors, all_pairs(vectors, metric), graph, 24);
    }
}

TEST(SearchLinks, GiveBackTheirMemoryAndAskForInterrupts) {
    const Vectors vectors = random_vectors(2000, 8, DType::f32);
    const KnnGraph graph = exact_graph(vectors, Metric::L2, 20);
    std::vector<std::int32_t> links(2000 * 16);
    HeapResources heap;
    CountedResources measured(heap);
    search_links(vectors, graph, {16, kCpu, 2}, links.data(), {}, &measured);
    EXPECT_GT(measured.peak(), 0u);
    EXPECT_EQ(measured.held(), 0u);
    CountedResources limited(heap, measured.peak() / 2);
    EXPECT_THROW(search_links(vectors, graph, {16, kCpu, 2}, links.data(), {}, &limited), Error);
    EXPECT_EQ(limited.held(), 0u);
    for (const int patience : {1, 3, 20}) {
        int asked = 0;
        Callbacks callbacks;
        callbacks.interrupt = [&] { return ++asked > patience; };
        EXPECT_THROW(search_links(vectors, graph, {16, kCpu, 1}, links.data(), callbacks), Interrupted);
    }
}

/// The error that arguments give; empty if there is none.
std::string error_of(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params,
                     bool nowhere = false) {
    std::vector<std::int32_t> links(std::size_t(std::max<std::int64_t>(0, vectors.n * params.degree)));
    try {
        search_links(vectors, graph, params, nowhere ? nullptr : links.data());
    } catch (const InvalidArgument& error) {
        return error.what();
    }
    return "";
}

TEST(SearchLinksErrors, ArgumentsAreChecked) {
    const Vectors vectors = random_vectors(50, 3, DType::f32);
    KnnGraph graph = exact_graph(vectors, Metric::L2, 5);
    const LinkParams params{8, kCpu, 1};
    EXPECT_EQ(error_of(vectors, graph, params), "");
    EXPECT_EQ(error_of(vectors, graph, {0, kCpu}), "LinkParams::degree = 0, allowed are 1 to 4096");
    EXPECT_EQ(error_of(vectors, graph, {4097, kCpu}), "LinkParams::degree = 4097, allowed are 1 to 4096");
    EXPECT_EQ(error_of(vectors, graph, {8, kCpu, -1}), "LinkParams::threads (0: all) = -1, allowed are 0 to 4096");
    EXPECT_NE(error_of(vectors, graph, {8, {Device::Kind::cuda, -1}}), "");
    EXPECT_EQ(error_of(vectors, graph, params, true), "search_links: links are a null pointer");

    VectorView view = vectors;
    view.n = 49;
    EXPECT_EQ(error_of(view, graph, params), "search_links: the graph has 50 objects, the vectors 49");
    view.n = 1;
    EXPECT_EQ(error_of(view, graph, params), "1 vectors; a graph needs 2 to 2147483647");
    KnnGraphView broken = graph;
    broken.distances = nullptr;
    EXPECT_EQ(error_of(vectors, broken, params), "search_links: the graph's arrays are null pointers");
    broken = graph;
    broken.k = 0;
    EXPECT_EQ(error_of(vectors, broken, params), "k = 0, allowed are 1 to 1024");
    broken = graph;
    broken.metric = Metric(77);
    EXPECT_NE(error_of(vectors, broken, params), "");
    for (const std::int32_t id : {-2, 50}) {
        graph.ids()[17] = id;
        EXPECT_EQ(error_of(vectors, graph, params),
                  "graph.ids[17] = " + std::to_string(id) + " is outside of [-1, 50)");
    }
}

TEST(SearchLinksErrors, ADeviceThatIsNotThere) {
    const Vectors vectors = random_vectors(50, 3, DType::f32);
    const KnnGraph graph = exact_graph(vectors, Metric::L2, 5);
    EXPECT_THROW(links_of(vectors, graph, {8, {Device::Kind::cuda, 4000}}), Unavailable);
    EXPECT_EQ(links_of(vectors, graph, {200, {}}), links_of(vectors, graph, {200, kCpu}));
}

}  // namespace
}  // namespace gnnd
