// SPDX-License-Identifier: MIT
#include "faiss_ext/graph_builder.h"
#include "tests/faiss_helpers.h"
#include "tests/invariants.h"

namespace {

using faiss_ext::IvfpqGraphBuilder;
using faiss_ext::VectorSource;
using gnnd::Metric;
using gnnd::test::expect_faiss_error;
using gnnd::test::expect_valid_graph;
using gnnd::test::OneFaissThread;
using gnnd::test::sample;

TEST(IvfpqGraphBuilder, FillsRowsThatFallShort) {
    const OneFaissThread quiet;
    faiss_ext::IvfpqParams params;
    params.nlist = 50;
    params.nprobe = 1;
    params.code_bytes = 7;  // 128 has no such divisor: 4 are used
    const gnnd::VectorView vectors = sample(2000);
    IvfpqGraphBuilder builder(params);
    const gnnd::KnnGraph graph = builder.build(VectorSource(vectors, Metric::L2), 100);
    expect_valid_graph(graph, vectors);
    const gnnd::KnnGraph again = builder.build(VectorSource(vectors, Metric::L2), 100);
    EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + graph.n() * graph.k(), again.ids()));
}

TEST(IvfpqGraphBuilder, TrainsOnAsManyVectorsAsAsked) {
    const OneFaissThread quiet;
    faiss_ext::IvfpqParams params;
    params.nlist = 20;
    params.nprobe = 1;
    const gnnd::VectorView vectors = sample(2000);
    const VectorSource source(vectors, Metric::L2);
    const gnnd::KnnGraph of_all = IvfpqGraphBuilder(params).build(source, 5);
    params.points_per_centroid = 100;  // as many as there are
    const gnnd::KnnGraph of_as_many = IvfpqGraphBuilder(params).build(source, 5);
    params.points_per_centroid = 2;
    const gnnd::KnnGraph of_few = IvfpqGraphBuilder(params).build(source, 5);
    expect_valid_graph(of_few, vectors);
    EXPECT_TRUE(std::equal(of_all.ids(), of_all.ids() + 2000 * 5, of_as_many.ids()));
    EXPECT_FALSE(std::equal(of_all.ids(), of_all.ids() + 2000 * 5, of_few.ids()));
}

TEST(IvfpqGraphBuilder, SearchesAKeptIndexOfTheSameVectorsAgain) {
    const OneFaissThread quiet;
    const gnnd::VectorView vectors = sample(2000), others = sample(1500);
    const VectorSource source(vectors, Metric::L2), fewer(others, Metric::L2);
    IvfpqGraphBuilder keeps;
    keeps.params.code_bytes = 4;
    keeps.keep_index = true;
    const auto expect_as_new = [&](const VectorSource& of, bool again) {
        const std::vector<faiss_ext::StepTime> before = keeps.timing;
        const gnnd::KnnGraph graph = keeps.build(of, 5);
        const gnnd::KnnGraph anew = IvfpqGraphBuilder(keeps.params).build(of, 5);
        EXPECT_TRUE(std::equal(anew.ids(), anew.ids() + anew.n() * 5, graph.ids()));
        ASSERT_EQ(keeps.timing.size(), 3u);
        EXPECT_EQ(!before.empty() && before[0].seconds == keeps.timing[0].seconds, again);
    };
    for (const int nprobe : {1, 7, 1}) {
        keeps.params.nprobe = nprobe;
        expect_as_new(source, !keeps.timing.empty());
    }
    keeps.params.seed += std::uint64_t(1) << 40;  // of the training sample alone
    expect_as_new(source, false);
    keeps.params.nlist = 9;
    expect_as_new(source, false);
    expect_as_new(fewer, false);
    expect_as_new(fewer, true);
    keeps.keep_index = false;
    expect_as_new(fewer, true);
    expect_as_new(fewer, false);
}

TEST(IvfpqGraphBuilder, RefusesBadParameters) {
    const VectorSource source(sample(100), Metric::L2);
    faiss_ext::IvfpqParams nlist, bytes, nprobe, points;
    nlist.nlist = -1;
    bytes.code_bytes = 0;
    nprobe.nprobe = 0;
    points.points_per_centroid = 0;
    for (const auto& params : {nlist, bytes, nprobe, points})
        expect_faiss_error("allowed are nlist >= 0", [&] { IvfpqGraphBuilder(params).build(source, 5); });
}

}  // namespace
