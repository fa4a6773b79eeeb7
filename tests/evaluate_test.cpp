// SPDX-License-Identifier: MIT
#include "faiss_ext/evaluate.h"

#include <algorithm>

#include "tests/faiss_helpers.h"
#include "tests/truths.h"

namespace {

using faiss_ext::recall;
using faiss_ext::recall_against;
using faiss_ext::sample_objects;
using faiss_ext::VectorSource;
using gnnd::KnnGraph;
using gnnd::Metric;
using gnnd::test::expect_faiss_error;
using gnnd::test::view_of;

/// Objects on a line at 0, 1, 2, 4, 8, 16.
const std::vector<float> kLine = {0, 1, 2, 4, 8, 16};

/// The graph with these rows; distances stay unset, recall() does not rely on them.
KnnGraph graph_of(const std::vector<std::vector<std::int32_t>>& rows, Metric metric = Metric::L2) {
    KnnGraph graph(std::int64_t(rows.size()), std::int64_t(rows[0].size()), metric);
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy(rows[i].begin(), rows[i].end(), graph.ids() + i * rows[0].size());
    return graph;
}

TEST(SampleObjects, AreDistinctAscendingAndReproducible) {
    const auto sample = sample_objects(1000, 300, 7);
    EXPECT_EQ(sample.size(), 300u);
    EXPECT_EQ(std::adjacent_find(sample.begin(), sample.end(), std::greater_equal<>()), sample.end());
    EXPECT_GE(sample.front(), 0);
    EXPECT_LT(sample.back(), 1000);
    EXPECT_EQ(sample, sample_objects(1000, 300, 7));
    EXPECT_NE(sample, sample_objects(1000, 300, 8));
    for (const std::int64_t count : {0, 5, 6}) EXPECT_EQ(sample_objects(5, count, 1), sample_objects(5, 5, 2));
    EXPECT_TRUE(sample_objects(0, 0, 1).empty());
    expect_faiss_error("-1", [] { sample_objects(5, -1, 1); });
}

TEST(Recall, CountsWhatIsAsNearAsTheKth) {
    const VectorSource source(view_of(kLine, 1), Metric::L2);
    // Row 2: objects 0 and 3 are both at distance 4, one behind object 1.
    const KnnGraph graph = graph_of({{1, 2}, {0, 2}, {1, 3}, {2, 1}, {3, 2}, {4, 3}});
    const auto result = recall(source, graph, 2, 0);
    EXPECT_EQ(result.value, 1);
    EXPECT_EQ(result.k, 2);
    EXPECT_EQ(result.queries, 6);
    EXPECT_GE(result.seconds, 0);

    const KnnGraph worse = graph_of({{1, 3}, {0, 5}, {1, 3}, {2, 1}, {5, 0}, {4, 3}});
    EXPECT_DOUBLE_EQ(recall(source, worse, 2, 0).value, 8. / 12);
    EXPECT_DOUBLE_EQ(recall(source, worse, 1, 0).value, 5. / 6);
}

TEST(Recall, CountsNeitherSelfNorTwice) {
    const VectorSource source(view_of(kLine, 1), Metric::L2);
    const KnnGraph graph = graph_of({{0, 1}, {0, 0}, {1, -1}, {2, 1}, {3, 2}, {4, 3}});
    EXPECT_DOUBLE_EQ(recall(source, graph, 2, 0).value, 9. / 12);
}

TEST(Recall, KnowsSimilarities) {
    const VectorSource source(view_of(kLine, 1), Metric::InnerProduct);
    const KnnGraph graph = graph_of({{1}, {5}, {5}, {5}, {5}, {3}}, Metric::InnerProduct);
    EXPECT_DOUBLE_EQ(recall(source, graph, 1, 0).value, 5. / 6);  // all are equally near to the zero vector
}

TEST(Recall, ComparesOnlyWhatExists) {
    const VectorSource source(gnnd::VectorView{kLine.data(), 3, 1}, Metric::L2);
    const KnnGraph graph = graph_of({{1, 2, -1, -1}, {0, 2, -1, -1}, {1, 0, -1, -1}});
    EXPECT_EQ(recall(source, graph, 4, 0).value, 1);
}

TEST(Recall, SamplesObjects) {
    const VectorSource source(gnnd::test::sample(500), Metric::L2);
    const KnnGraph exact = faiss_ext::ExactGraphBuilder().build(source, 10);
    const auto result = recall(source, exact, 10, 50);
    EXPECT_EQ(result.value, 1);
    EXPECT_EQ(result.queries, 50);
}

TEST(Recall, IsTheSameByBothTruths) {
    const gnnd::test::OneFaissThread one;
    gnnd::test::expect_same_truths({gnnd::Device::Kind::cpu, 0}, {});
}

TEST(Recall, OfRowsIsThatOfTheGraph) {
    const VectorSource source(view_of(kLine, 1), Metric::L2);
    const KnnGraph graph = graph_of({{1, 3}, {0, 5}, {1, 3}, {2, 1}, {5, 0}, {4, 3}});
    const KnnGraph rows = graph_of({{1, 3}, {5, 0}}), truth = graph_of({{1, 3}, {3, 2}});
    const double value = faiss_ext::recall_of_rows_against(source, rows, {2, 4}, truth, 2);
    EXPECT_EQ(value, recall_against(source, graph, {2, 4}, truth, 2));
    EXPECT_EQ(value, faiss_ext::recall_of_rows(source, rows, {2, 4}, 2).value);
    expect_faiss_error("2 rows under l2 for 1 objects",
                       [&] { faiss_ext::recall_of_rows_against(source, rows, {2}, truth, 2); });
}

TEST(Recall, RefusesWhatDoesNotFit) {
    const VectorSource source(view_of(kLine, 1), Metric::L2);
    const KnnGraph graph = graph_of({{1, 2}, {0, 2}, {1, 3}, {2, 1}, {3, 2}, {4, 3}});
    for (const int k : {0, 3}) expect_faiss_error("the graph allows 1 to 2", [&] { recall(source, graph, k); });
    const VectorSource other(view_of(kLine, 2), Metric::L2);
    expect_faiss_error("6 objects", [&] { recall(other, graph, 1); });
    const VectorSource cosine(view_of(kLine, 1), Metric::Cosine);
    expect_faiss_error("cosine", [&] { recall(cosine, graph, 1); });
    expect_faiss_error("needed are 3 rows of at least 2", [&] { recall_against(source, graph, {0, 1, 2}, graph, 2); });
    expect_faiss_error("no object 6", [&] { recall_against(source, graph, {0, 1, 2, 3, 4, 6}, graph, 2); });
    expect_faiss_error("nothing to compare", [&] { recall_against(source, graph, {}, KnnGraph(0, 2, Metric::L2), 2); });
    const KnnGraph wild = graph_of({{1, 2}, {0, 2}, {1, 9}, {2, 1}, {3, 2}, {4, 3}});
    expect_faiss_error("the row of object 2 holds id 9 of 6 objects", [&] { recall(source, wild, 2, 0); });
}

}  // namespace
