// SPDX-License-Identifier: MIT
#include "faiss_ext/adapters.h"

#include <faiss/IndexFlat.h>
#include <faiss/index_io.h>
#include <faiss/utils/distances.h>

#include <algorithm>
#include <functional>

#include "faiss_ext/graph_builder.h"
#include "faiss_ext/optimize.h"
#include "tests/faiss_helpers.h"
#include "tests/graph_index.h"
#include "tests/temp_dir.h"

namespace {

using faiss_ext::ExactGraphBuilder;
using faiss_ext::idx_t;
using faiss_ext::to_hnsw;
using faiss_ext::to_nndescent;
using faiss_ext::to_nsg;
using faiss_ext::VectorSource;
using gnnd::KnnGraph;
using gnnd::KnnGraphView;
using gnnd::Metric;
using gnnd::test::expect_faiss_error;
using gnnd::test::random_rows;
using gnnd::test::reachable;
using gnnd::test::search_index;
using gnnd::test::search_recall;
using gnnd::test::SearchResult;
using gnnd::test::view_of;

/// One of the adapters, with its default parameters.
struct Adapter {
    const char* name;
    std::function<std::unique_ptr<faiss::Index>(const VectorSource&, const KnnGraphView&)> make;
    friend std::ostream& operator<<(std::ostream& out, const Adapter& adapter) { return out << adapter.name; }
};

const Adapter kAdapters[] = {
    {"nsg", [](const VectorSource& source, const KnnGraphView& graph) { return to_nsg(source, graph); }},
    {"hnsw", [](const VectorSource& source, const KnnGraphView& graph) { return to_hnsw(source, graph); }},
    {"hnsw_base", [](const VectorSource& source,
                     const KnnGraphView& graph) { return to_hnsw(source, graph, {.M = 16, .base_level_only = true}); }},
    {"nndescent", [](const VectorSource& source, const KnnGraphView& graph) { return to_nndescent(source, graph); }},
};

class Adapters : public testing::TestWithParam<Adapter> {};

INSTANTIATE_TEST_SUITE_P(All, Adapters, testing::ValuesIn(kAdapters),
                         [](const auto& info) { return std::string(info.param.name); });

// The real sample, its last 1,000 rows as queries. Beam width 64, R = 2 M = 32.
TEST_P(Adapters, SearchRealVectorsAndSurviveFiles) {
    constexpr std::int64_t n = gnnd::test::sized(20000) - 1000;
    static const VectorSource source(gnnd::test::sample(n), Metric::L2);
    static const KnnGraph graph = faiss_ext::GnndGraphBuilder().build(source, 32);
    std::vector<float> rows(n * 128), queries(1000 * 128);
    gnnd::copy_as_f32(source.vectors(), 0, n, rows.data());
    gnnd::copy_as_f32(gnnd::test::sample(n + 1000), n, 1000, queries.data());
    faiss::IndexFlatL2 flat(128);
    flat.add(n, rows.data());

    const auto index = GetParam().make(source, graph);
    EXPECT_EQ(index->ntotal, n);
    EXPECT_GE(search_recall(*index, flat, queries, 10), 0.95);

    const gnnd::test::TempDir dir;
    faiss::write_index(index.get(), dir.file("index").c_str());
    const std::unique_ptr<faiss::Index> read(faiss::read_index(dir.file("index").c_str()));
    const SearchResult before = search_index(*index, queries, 10), after = search_index(*read, queries, 10);
    EXPECT_EQ(before.ids, after.ids);
    EXPECT_EQ(before.distances, after.distances);
    EXPECT_EQ(VectorSource(read.get()).vectors().n, n);
}

TEST_P(Adapters, TakeTheMetricsOfFaiss) {
    const std::vector<float> rows = random_rows(1200, 16, true), queries = random_rows(100, 16, true, 2);
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1, Metric::Linf}) {
        SCOPED_TRACE(std::string(gnnd::name_of(metric)));
        const bool cosine = metric == Metric::Cosine;
        std::vector<float> stored = rows, asked = queries;
        if (cosine) {
            faiss::fvec_renorm_L2(16, 1200, stored.data());
            faiss::fvec_renorm_L2(16, 100, asked.data());
        }
        faiss::IndexFlat flat(16, cosine ? faiss::METRIC_INNER_PRODUCT : faiss_ext::to_faiss_metric(metric));
        flat.add(1200, stored.data());
        const VectorSource source(view_of(rows, 16), metric);
        const auto index = GetParam().make(source, ExactGraphBuilder().build(source, 24));
        EXPECT_EQ(index->metric_type, flat.metric_type);
        EXPECT_GE(search_recall(*index, flat, asked, 10), 0.9);
    }
    const VectorSource chi2(view_of(rows, 16), Metric::ChiSquare);
    expect_faiss_error("no metric chi2", [&] { GetParam().make(chi2, ExactGraphBuilder().build(chi2, 5)); });
}

TEST_P(Adapters, TakeTinySets) {
    for (const int n : {2, 3, 5, 20, 70}) {
        SCOPED_TRACE(n);
        const std::vector<float> rows = random_rows(n, 3);
        const VectorSource source(view_of(rows, 3), Metric::L2);
        const auto index = GetParam().make(source, ExactGraphBuilder().build(source, 32));
        faiss::IndexFlatL2 flat(3);
        flat.add(n, rows.data());
        const idx_t k = std::min(n - 1, 10);
        EXPECT_EQ(search_recall(*index, flat, rows, k), 1);
    }
}

TEST_P(Adapters, RefuseWhatDoesNotFit) {
    std::vector<float> rows = random_rows(50, 4);
    const VectorSource source(view_of(rows, 4), Metric::L2);
    const KnnGraph graph = ExactGraphBuilder().build(source, 5);
    const VectorSource fewer(gnnd::VectorView{rows.data(), 49, 4}, Metric::L2);
    expect_faiss_error("the graph has 50 objects under l2, the source 49", [&] { GetParam().make(fewer, graph); });
    const VectorSource other(view_of(rows, 4), Metric::L1);
    expect_faiss_error("under l1", [&] { GetParam().make(other, graph); });

    KnnGraph gaps = graph;
    gaps.ids()[7 * 5 + 4] = -1;
    expect_faiss_error("7", [&] { GetParam().make(source, gaps); });
    KnnGraph wild = graph;
    wild.ids()[9 * 5] = 50;
    expect_faiss_error("9", [&] { GetParam().make(source, wild); });

    const VectorSource single(gnnd::VectorView{rows.data(), 1, 4}, Metric::L2);
    expect_faiss_error("1 vectors", [&] { GetParam().make(single, KnnGraph(1, 5, Metric::L2)); });
    rows[3 * 4] = INFINITY;
    expect_faiss_error("vector 3 ", [&] { GetParam().make(source, graph); });
}

TEST(Adapters, UpperLevelsAreThoseOfFaiss) {
    const VectorSource source(gnnd::test::sample(5000), Metric::L2);
    const KnnGraph graph = faiss_ext::GnndGraphBuilder().build(source, 32);
    const auto index = to_hnsw(source, graph, {.M = 8});
    const faiss::HNSW& hnsw = index->hnsw;
    ASSERT_GE(hnsw.max_level, 2);
    EXPECT_EQ(hnsw.levels[hnsw.entry_point], hnsw.max_level + 1);
    for (std::int32_t i = 0; i < 5000; ++i)
        for (int level = 1; level < hnsw.levels[i]; ++level) {
            std::size_t begin = 0, end = 0;
            hnsw.neighbor_range(i, level, &begin, &end);
            EXPECT_EQ(end - begin, 8u);
            for (std::size_t at = begin; at < end; ++at) {
                const std::int32_t link = hnsw.neighbors[at];
                if (link < 0) continue;
                ASSERT_NE(link, i);
                ASSERT_GT(hnsw.levels[link], level) << "object " << i;
            }
            if (level == 1) {
                EXPECT_GE(hnsw.neighbors[begin], 0);
            }
        }
}

TEST(OptimizedGraph, IsWhatTheAdaptersLink) {
    const VectorSource source(gnnd::test::sample(3000), Metric::L2);
    const KnnGraph graph = faiss_ext::GnndGraphBuilder().build(source, 40);
    const faiss_ext::SearchGraph made = faiss_ext::optimize_graph(source, graph, 24);
    EXPECT_EQ(made.degree, 24);
    const auto nsg = to_nsg(source, graph, {.R = 24});
    EXPECT_EQ(made.entry, nsg->nsg.enterpoint);
    EXPECT_TRUE(std::equal(made.links.begin(), made.links.end(), nsg->nsg.final_graph->data));
    EXPECT_EQ(made.of(5), made.links.data() + 5 * 24);
    expect_faiss_error("optimize_graph: the graph has 3000", [&] {
        faiss_ext::optimize_graph({gnnd::test::sample(2000), Metric::L2}, graph, 24);
    });
    expect_faiss_error("degree = 0", [&] { faiss_ext::optimize_graph(source, graph, 0); });
    expect_faiss_error("degree = 5000", [&] { faiss_ext::optimize_graph(source, graph, 5000); });
}

#ifdef GNND_FAISS_HAS_CAGRA
TEST(Cagra, RowsAreFullAndSearchFindsItsWay) {
    std::vector<float> rows(5000 * 128);
    gnnd::copy_as_f32(gnnd::test::sample(5000), 0, 5000, rows.data());
    faiss::IndexFlatL2 flat(128);
    flat.add(5000, rows.data());
    const VectorSource source(gnnd::test::sample(5000), Metric::L2);
    const KnnGraph graph = faiss_ext::GnndGraphBuilder().build(source, 32);
    const auto index = faiss_ext::to_hnsw_cagra(source, graph, {.degree = 24});
    EXPECT_TRUE(index->base_level_only);
    EXPECT_EQ(index->hnsw.nb_neighbors(0), 24);
    for (int i = 0; i < 5000; ++i) {
        std::size_t begin = 0, end = 0;
        index->hnsw.neighbor_range(i, 0, &begin, &end);
        std::vector<std::int32_t> row(index->hnsw.neighbors.data() + begin, index->hnsw.neighbors.data() + end);
        std::sort(row.begin(), row.end());
        ASSERT_EQ(std::unique(row.begin(), row.end()), row.end());
        ASSERT_GE(row.front(), 0);
        ASSERT_FALSE(std::binary_search(row.begin(), row.end(), i));
    }
    EXPECT_GE(search_recall(*index, flat, rows, 10), 0.95);
    const gnnd::test::TempDir dir;
    const std::string path = dir.file("cagra");
    faiss::write_index(index.get(), path.c_str());
    const std::unique_ptr<faiss::Index> read(faiss::read_index(path.c_str()));
    EXPECT_GE(search_recall(*read, flat, rows, 10), 0.95);

    expect_faiss_error("HnswCagraParams::degree = 2", [&] { faiss_ext::to_hnsw_cagra(source, graph, {.degree = 2}); });
    expect_faiss_error("not even", [&] { faiss_ext::to_hnsw_cagra(source, graph, {.degree = 5}); });
    const std::vector<float> few = random_rows(10, 4);
    const VectorSource tiny(view_of(few, 4), Metric::L2);
    expect_faiss_error("only 9",
                       [&] { faiss_ext::to_hnsw_cagra(tiny, ExactGraphBuilder().build(tiny, 5), {.degree = 10}); });
    const auto full = faiss_ext::to_hnsw_cagra(tiny, ExactGraphBuilder().build(tiny, 3), {.degree = 8});
    EXPECT_EQ(std::count(full->hnsw.neighbors.data(), full->hnsw.neighbors.data() + 10 * 8, -1), 0);
}
#endif

TEST(Cagra, OnAGpuNeedsAFaissThatHasIt) {
    if (faiss_ext::faiss_has_cagra()) GTEST_SKIP() << "FAISS has CAGRA; the tests on a GPU make one";
    const std::vector<float> rows = random_rows(50, 4);
    const VectorSource source(view_of(rows, 4), Metric::L2);
    expect_faiss_error("to_gpu_cagra: faiss_ext was built with a FAISS that has no GpuIndexCagra",
                       [&] { faiss_ext::to_gpu_cagra(source, ExactGraphBuilder().build(source, 8)); });
}

TEST(AdapterParameters, AreChecked) {
    const std::vector<float> rows = random_rows(50, 4);
    const VectorSource source(view_of(rows, 4), Metric::L2);
    const KnnGraph graph = ExactGraphBuilder().build(source, 5);
    expect_faiss_error("NsgParams::R = 0", [&] { to_nsg(source, graph, {.R = 0}); });
    expect_faiss_error("NsgParams::R = 5000", [&] { to_nsg(source, graph, {.R = 5000}); });
    expect_faiss_error("NsgParams::search_L = 0", [&] { to_nsg(source, graph, {.search_L = 0}); });
    expect_faiss_error("HnswParams::M = 1", [&] { to_hnsw(source, graph, {.M = 1}); });
    expect_faiss_error("HnswParams::efSearch = 0", [&] { to_hnsw(source, graph, {.efSearch = 0}); });
    expect_faiss_error("NNDescentIndexParams::search_L = -1", [&] { to_nndescent(source, graph, {.search_L = -1}); });
}

/// Row sets on which links lead nowhere, or only to each other.
std::vector<float> awkward(const std::string& kind) {
    std::vector<float> rows = random_rows(1000, 8);
    for (std::int64_t i = 0; i < 1000; ++i) {
        float* row = rows.data() + i * 8;
        if (kind == "equal") std::fill_n(row, 8, 3.0f);
        if (kind == "few values") std::fill_n(row, 8, float(i % 5));
        if (kind == "far clusters")
            for (int c = 0; c < 8; ++c) row[c] += 1000.0f * float((i % 20 * 7 + c * 3) % 11);
    }
    if (kind != "equidistant") return rows;
    rows.assign(200 * 200, 0.0f);
    for (int i = 0; i < 200; ++i) rows[i * 200 + i] = 1;
    return rows;
}

class AwkwardRows : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, AwkwardRows, testing::Values("equal", "few values", "far clusters", "equidistant"));

TEST_P(AwkwardRows, AreAllReachable) {
    const std::vector<float> rows = awkward(GetParam());
    const std::int64_t d = GetParam() == std::string("equidistant") ? 200 : 8;
    const VectorSource source(view_of(rows, d), Metric::L2);
    const KnnGraph graph = ExactGraphBuilder().build(source, 16);
    const auto n = std::size_t(source.vectors().n);
    for (const int R : {1, 2, 8, 32}) {
        SCOPED_TRACE(R);
        const auto index = to_nsg(source, graph, {.R = R});
        EXPECT_EQ(reachable(*index), n);
    }
    const auto hnsw = to_hnsw(source, graph, {.M = 4});
    EXPECT_EQ(reachable(*hnsw), n);
    if (GetParam() == std::string("equidistant")) return;  // no beam search finds its way where nothing is nearer
    faiss::IndexFlatL2 flat(d);
    flat.add(idx_t(n), rows.data());
    EXPECT_GE(search_recall(*hnsw, flat, rows, 1), 0.99);
}

}  // namespace
