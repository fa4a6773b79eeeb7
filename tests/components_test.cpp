// SPDX-License-Identifier: MIT
// Connected components and groups of copies.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/operations.h"
#include "tests/cpu.h"
#include "tests/operations.h"

namespace gnnd {
namespace {

using test::random_graph;
using test::Sparse;

/// Labels by walking along the pairs, in the order of the first objects.
std::vector<std::int32_t> naive_labels(const Sparse& pairs) {
    std::vector<std::int32_t> labels(pairs.size(), -1);
    std::int32_t next = 0;
    for (std::size_t start = 0; start < pairs.size(); ++start) {
        if (labels[start] >= 0) continue;
        std::vector<std::size_t> open{start};
        labels[start] = next;
        while (!open.empty()) {
            const std::size_t i = open.back();
            open.pop_back();
            for (const auto& [j, value] : pairs[i])
                if (labels[std::size_t(j)] < 0) labels[std::size_t(j)] = next, open.push_back(std::size_t(j));
        }
        ++next;
    }
    return labels;
}

Sparse either_way(const KnnGraphView& graph, const EdgeParams& params) {
    return test::naive_join(test::naive_neighbors(graph, params), [](float a, float) { return a; });
}

void expect_components(const Components& found, const Sparse& pairs) {
    const std::vector<std::int32_t> expected = naive_labels(pairs);
    EXPECT_EQ(std::vector(found.labels.begin(), found.labels.end()), expected);
    std::vector<std::int64_t> sizes(found.sizes.size());
    for (const std::int32_t label : expected) ++sizes[std::size_t(label)];
    EXPECT_EQ(found.sizes, sizes);
}

class ComponentsTest : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(All, ComponentsTest, testing::ValuesIn(test::kMetrics), test::metric_name);

TEST_P(ComponentsTest, AreThoseOfTheDefinition) {
    std::size_t most = 0;
    for (const std::int64_t n : {1, 2, 40, 6000})
        for (const int k : {1, 2, 9}) {
            if (k >= n && n > 1) continue;
            const KnnGraph graph = n == 1 ? KnnGraph(1, k, GetParam()) : random_graph(GetParam(), n, k, 4, true);
            for (const bool cut : {false, true})
                for (const int threads : {1, 3}) {
                    SCOPED_TRACE(testing::Message() << n << ", k " << k << ", cut " << cut);
                    EdgeParams params;
                    if (cut) params.radius = is_similarity(GetParam()) ? -0.5f : 0.5f;
                    params.threads = threads;
                    const Components found = connected_components(graph, params);
                    expect_components(found, either_way(graph, params));
                    most = std::max(most, found.sizes.size());
                    // The same by way of matrices: of one direction, and mutual ones.
                    expect_components(connected_components(neighbors_graph(graph, params), threads),
                                      either_way(graph, params));
                    const CsrGraph mutual = mutual_graph(graph, params);
                    expect_components(connected_components(mutual, threads), test::sparse_of(mutual));
                }
        }
    EXPECT_GT(most, 1000u) << "small ones were among them";
}

/// Long chains, in both orders: many steps from an object to the lowest of its component.
TEST_P(ComponentsTest, Chains) {
    for (const bool up : {true, false})
        for (const int pieces : {1, 7}) {
            const std::int64_t n = 50000;
            KnnGraph graph(n, 1, GetParam());
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t next = up ? i + pieces : i - pieces;
                if (next < 0 || next >= n) continue;
                graph.ids()[i] = std::int32_t(next);
                graph.distances()[i] = 1;
            }
            for (const int threads : {1, 4}) {
                const Components found = connected_components(graph, {0, {}, {}, threads});
                ASSERT_EQ(std::ssize(found.sizes), pieces);
                for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(found.labels[i], i % pieces) << i;
            }
        }
}

TEST(Components, NoObjects) {
    const Components none = connected_components(KnnGraph());
    EXPECT_TRUE(none.labels.empty() && none.sizes.empty());
    EXPECT_TRUE(connected_components(CsrGraph()).sizes.empty());
    const Duplicates copies = duplicates(KnnGraph());
    EXPECT_TRUE(copies.labels.empty() && copies.sizes.empty() && copies.firsts.empty());
}

TEST(Components, MatricesThatAreNone) {
    const auto matrix = [](std::int64_t n, std::vector<std::int64_t> indptr, std::vector<std::int32_t> indices) {
        CsrGraph made;
        made.n = n;
        made.indptr.assign(indptr.begin(), indptr.end());
        made.indices.assign(indices.begin(), indices.end());
        return made;
    };
    EXPECT_EQ(connected_components(matrix(3, {0, 1, 1, 1}, {2})).sizes, (std::vector<std::int64_t>{2, 1}));
    EXPECT_THROW(connected_components(matrix(3, {0, 1, 1}, {2})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(-1, {}, {})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(3, {1, 1, 1, 1}, {2})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(3, {0, 1, 1, 2}, {2})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(3, {0, 2, 1, 1}, {2})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(3, {0, 1, 1, 1}, {3})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(3, {0, 1, 1, 1}, {-1})), InvalidArgument);
    EXPECT_THROW(connected_components(matrix(3, {0, 1, 1, 1}, {2}), -1), InvalidArgument);
}

TEST(Components, AnInterruptEndsThem) {
    const Callbacks stop{{}, [] { return true; }, {}};
    const KnnGraph graph = random_graph(Metric::L2, 100, 3, 1, false);
    EXPECT_THROW(connected_components(graph, {}, stop), Interrupted);
    EXPECT_THROW(connected_components(symmetric_graph(graph), 0, stop), Interrupted);
    EXPECT_THROW(duplicates(graph, {}, stop), Interrupted);
}

/// n vectors, of which group g of `sizes` are copies, one of each group after the other; the rest are far from all.
test::Vectors with_copies(std::int64_t n, const std::vector<int>& sizes, float noise = 0) {
    test::Vectors vectors = test::random_vectors(n, 16, DType::f32);
    std::mt19937 random(3);
    std::int64_t i = 0;
    for (std::size_t g = 0; g < sizes.size(); ++g)
        for (int copy = 0; copy < sizes[g]; ++copy, ++i)
            for (std::int64_t c = 0; c < 16; ++c)
                vectors.set(i, c, float(g + 1) + float(c) + noise * std::normal_distribution<float>()(random));
    return vectors;
}

TEST(DuplicatesTest, GroupsLargerThanKAreWholeInAnExactGraph) {
    const std::vector<int> sizes{2, 3, 11, 12, 500, 1200};  // k = 10
    const std::int64_t copies = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)), n = copies + 8000;
    for (const Metric metric : {Metric::L2, Metric::L1, Metric::Cosine})
        for (const bool exact : {true, false}) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ", exact " << exact);
            const test::Vectors vectors = with_copies(n, sizes);
            BuildParams params = test::cpu_params(10, metric);
            const BuildResult built = exact ? build_exact(vectors, params) : build(vectors, params);
            EXPECT_EQ(built.stats.stop == StopReason::exact, exact);
            const KnnGraph& graph = built.graph;
            const Duplicates found = duplicates(graph, {metric == Metric::Cosine ? 0.999999f : 0.f, {}, 0, 0});
            if (exact) {
                EXPECT_EQ(found.sizes, std::vector<std::int64_t>(sizes.begin(), sizes.end()));
            }
            std::int64_t i = 0, full = 0;
            std::vector<std::set<std::int32_t>> labels(sizes.size());
            for (std::size_t g = 0; g < sizes.size(); ++g) {
                full += sizes[g] > 10 ? sizes[g] : 0;
                for (int copy = 0; copy < sizes[g]; ++copy, ++i) {
                    ASSERT_GE(found.labels[i], 0) << i;
                    labels[g].insert(found.labels[i]);
                }
                // Only those fall apart whose rows do not hold all, and each group is of one kind.
                if (sizes[g] <= 11) {
                    EXPECT_EQ(labels[g].size(), 1u) << g;
                }
                if (g > 0) {
                    EXPECT_LT(*labels[g - 1].rbegin(), *labels[g].begin());
                }
            }
            EXPECT_EQ(std::int64_t(*labels.back().rbegin()) + 1, std::ssize(found.sizes));
            for (; i < n; ++i) ASSERT_EQ(found.labels[i], -1) << i;
            EXPECT_EQ(found.full, full) << "which tells that they may have";
        }
}

TEST(DuplicatesTest, ThousandsOfEqualRowsAreOneGroup) {
    const std::vector<int> sizes{2, 3, 11, 500, 1200};
    const std::int64_t copies = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)), n = copies + 5000;
    const test::Vectors vectors = with_copies(n, sizes);
    for (const int threads : {1, 4}) {
        const Array<std::int32_t> equal = equal_rows(vectors, threads);
        std::int32_t i = 0, first = 0;
        for (const int size : sizes)
            for (first = i; i < first + size; ++i) ASSERT_EQ(equal[std::size_t(i)], first);
        for (; i < n; ++i) ASSERT_EQ(equal[std::size_t(i)], i);
    }
    const std::vector<std::int64_t> expected(sizes.begin(), sizes.end());
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1}) {
        SCOPED_TRACE(name_of(metric));
        BuildParams params = test::cpu_params(10, metric);
        params.recall = 0;  // even a bad graph
        params.iterations = 1;
        // Vectors of groups are similar to each other under cosine, and ip has no least distance.
        DuplicateParams cut{metric == Metric::Cosine ? 1.f : metric == Metric::InnerProduct ? 1e6f : 0.f, {}, 0, 2};
        const Duplicates found = duplicates(vectors, cut, params);
        if (metric != Metric::Cosine) {
            EXPECT_EQ(found.sizes, expected);
        }
        std::int32_t i = 0;
        for (std::size_t g = 0; g < sizes.size(); ++g)
            for (const std::int32_t first = i; i < first + sizes[g]; ++i)
                ASSERT_EQ(found.labels[std::size_t(i)], found.labels[std::size_t(first)]) << i;
        for (; i < n; ++i) ASSERT_EQ(found.labels[std::size_t(i)], -1) << i;
        EXPECT_EQ(found.full, 0) << "no row is full of equal ones";

        const KnnGraph graph = build(vectors, params).graph;
        const Array<std::int32_t> equal = equal_rows(vectors);
        cut.equal = equal.data();
        const Duplicates joined = duplicates(graph, cut);
        EXPECT_EQ(std::vector(joined.labels.begin(), joined.labels.end()),
                  std::vector(found.labels.begin(), found.labels.end()));
    }
    const std::vector<std::int32_t> outside(std::size_t(n), 1 << 30);
    const KnnGraph graph = random_graph(Metric::L2, n, 3, 1, false);
    EXPECT_THROW(duplicates(graph, {0, {}, 0, 0, outside.data()}), InvalidArgument);
}

TEST(DuplicatesTest, OfVectors) {
    const test::Vectors vectors = with_copies(700, {3, 40});
    const BuildParams params = test::cpu_params(8);
    EXPECT_TRUE(duplicates(vectors, {-1, {}, 0, 0}, params).sizes.empty()) << "not even equal ones are so near";
    EXPECT_THROW(duplicates(vectors, {NAN, {}, 0, 0}, params), InvalidArgument);
    // Near copies are pairs of the graph; however many equal rows there are of each.
    const test::Vectors kinds = with_copies(93, {3, 40, 50});
    const Duplicates near = duplicates(kinds, {4.1f, GraphValues::distance, 0, 0}, params);
    EXPECT_EQ(near.sizes, (std::vector<std::int64_t>{93})) << "whose kinds are a distance of 4 apart";
    EXPECT_EQ(near.full, 40) << "of the kind that is near both others";
    const VectorView equal{vectors.view().row(10), 20, 16, DType::f32, 0};
    EXPECT_EQ(duplicates(equal, {}, params).sizes, (std::vector<std::int64_t>{20}));
    const VectorView alone{vectors.view().row(10), 1, 16, DType::f32, 0};
    EXPECT_TRUE(duplicates(alone, {}, params).sizes.empty());
    const Callbacks stop{{}, [] { return true; }, {}};
    EXPECT_THROW(duplicates(vectors, {}, params, stop), Interrupted);
    EXPECT_THROW(equal_rows(vectors, 0, stop), Interrupted);
    EXPECT_THROW(equal_rows({nullptr, 5, 16, DType::f32, 0}), InvalidArgument);
    EXPECT_TRUE(equal_rows({nullptr, 0, 16, DType::f32, 0}).empty());
}

TEST(DuplicatesTest, RowsThatCloseUpTellThatTheyAreFull) {
    // Six copies in two rings of three, as an approximate graph may have them: no row leads from one to the other.
    KnnGraph graph(6, 2, Metric::L2);
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 2; ++j) {
            graph.ids()[2 * i + j] = std::int32_t(i / 3 * 3 + (i + 1 + j) % 3);
            graph.distances()[2 * i + j] = 0;
        }
    for (int i = 0; i < 6; ++i) std::sort(graph.ids() + 2 * i, graph.ids() + 2 * i + 2);
    const Duplicates found = duplicates(graph);
    EXPECT_EQ(found.sizes, (std::vector<std::int64_t>{3, 3}));
    EXPECT_EQ(found.full, 6);
}

TEST(DuplicatesTest, NearCopiesByAThreshold) {
    const std::vector<int> sizes{4, 30, 200};
    const test::Vectors vectors = with_copies(800, sizes, 0.001f);
    const KnnGraph graph = build_exact(vectors, test::cpu_params(16)).graph;
    EXPECT_TRUE(duplicates(graph).sizes.empty()) << "none is a copy to the bit";
    const float squared = 0.02f * 0.02f;
    for (const DuplicateParams params :
         {DuplicateParams{squared, GraphValues::metric, 0, 1}, DuplicateParams{0.02f, GraphValues::distance, 0, 3}})
        EXPECT_EQ(duplicates(graph, params).sizes, (std::vector<std::int64_t>{4, 30, 200}));
    EXPECT_EQ(duplicates(graph, {INFINITY, {}, 0, 0}).full, 800);
    EXPECT_TRUE(duplicates(graph, {-1, {}, 0, 0}).sizes.empty());
    EXPECT_THROW(duplicates(graph, {NAN, {}, 0, 0}), InvalidArgument);
    EXPECT_THROW(duplicates(graph, {0, {}, 17, 0}), InvalidArgument);
}

/// Copies of copies are of one group: five of each by their making.
TEST(DuplicatesTest, HardSets) {
    for (const char* name : {"copies", "near"}) {
        const test::Vectors vectors = test::vectors_of(benchs::hard_set(name), 4000, DType::f32);
        const KnnGraph graph = build(vectors, test::cpu_params(12)).graph;
        const Duplicates found = duplicates(graph, {0.1f, {}, 0, 0});
        EXPECT_EQ(found.sizes, std::vector<std::int64_t>(800, 5)) << name;
        for (std::int32_t i = 0; i < 4000; ++i) ASSERT_EQ(found.labels[i], i / 5) << name;
        EXPECT_EQ(found.full, 0);
    }
}

}  // namespace
}  // namespace gnnd
