// SPDX-License-Identifier: MIT
#include "faiss_ext/graph_builder.h"

#include <faiss/IndexFlat.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <omp.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "faiss_ext/evaluate.h"
#include "faiss_ext/faiss_resources.h"
#include "faiss_ext/optimize.h"
#include "gnnd/device.h"
#include "tests/faiss_helpers.h"
#include "tests/invariants.h"

namespace {

using faiss_ext::ExactGraphBuilder;
using faiss_ext::GnndGraphBuilder;
using faiss_ext::GraphBuilder;
using faiss_ext::IvfpqGraphBuilder;
using faiss_ext::make_graph_builder;
using faiss_ext::NNDescentGraphBuilder;
using faiss_ext::VectorSource;
using gnnd::DType;
using gnnd::kMetrics;
using gnnd::Metric;
using gnnd::test::expect_faiss_error;
using gnnd::test::expect_valid_graph;
using gnnd::test::OneFaissThread;
using gnnd::test::random_rows;
using gnnd::test::random_vectors;
using gnnd::test::sample;
using gnnd::test::view_of;

std::vector<std::string> builder_names() {
    std::vector<std::string> names;
    for (const auto& type : faiss_ext::graph_builder_types()) names.push_back(type.name);
    return names;
}

bool supports(const std::string& name, Metric metric) {
    if (name == "ivfpq") return metric == Metric::L2 || metric == Metric::InnerProduct;
    return name != "nndescent" || faiss_ext::searched_metric(metric).has_value();
}

class Builders : public testing::TestWithParam<std::string> {
  protected:
    Builders() {
        if (auto* ivfpq = dynamic_cast<IvfpqGraphBuilder*>(builder.get())) ivfpq->params.code_bytes = 8;
        if (builder->name() == "ivfpq" || builder->name() == "nndescent") quiet.emplace();
    }
    std::unique_ptr<GraphBuilder> builder = make_graph_builder(GetParam());
    std::optional<OneFaissThread> quiet;
};

INSTANTIATE_TEST_SUITE_P(All, Builders, testing::ValuesIn(builder_names()),
                         [](const auto& info) { return info.param; });

TEST_P(Builders, GiveValidGraphs) {
    EXPECT_EQ(builder->name(), GetParam());
    for (const Metric metric : kMetrics) {
        const auto vectors = random_vectors(150, 12, DType::f32, true);
        const VectorSource source(vectors, metric);
        if (!supports(GetParam(), metric)) {
            expect_faiss_error(std::string(gnnd::name_of(metric)), [&] { builder->build(source, 5); });
            continue;
        }
        for (const int k : {1, 10, 160}) {
            SCOPED_TRACE(std::string(gnnd::name_of(metric)) + " k " + std::to_string(k));
            const gnnd::KnnGraph graph = builder->build(source, k);
            gnnd::check_structure(graph);
            expect_valid_graph(graph, vectors);
            EXPECT_FALSE(builder->timing.empty());
        }
    }
}

TEST_P(Builders, TakeEveryTypeAndStride) {
    for (const DType dtype : {DType::f32, DType::f16, DType::u8, DType::i8}) {
        const auto vectors = random_vectors(200, 8, dtype);
        gnnd::VectorView view = vectors;
        view.n = 100;
        view.stride = 2 * view.row_bytes();
        expect_valid_graph(builder->build(VectorSource(view, Metric::L2), 7), view);
    }
}

TEST_P(Builders, TakeTinySets) {
    for (const int n : {2, 3, 10, 21, 22, 40}) {
        SCOPED_TRACE(n);
        const auto vectors = random_vectors(n, 3, DType::f32);
        expect_valid_graph(builder->build(VectorSource(vectors, Metric::L2), 4), vectors);
    }
}

TEST_P(Builders, TakeEqualRows) {
    const std::vector<float> rows(300 * 4, 1.5f);
    expect_valid_graph(builder->build(VectorSource(view_of(rows, 4), Metric::L2), 12), view_of(rows, 4));
}

TEST_P(Builders, ReadTheVectorsOfAnIndex) {
    const std::vector<float> rows = random_rows(300, 8);
    faiss::IndexFlatIP index(8);
    index.add(300, rows.data());
    const std::vector<std::uint8_t> before(index.codes.begin(), index.codes.end());
    const gnnd::KnnGraph graph = builder->build(VectorSource(&index), 6);
    EXPECT_EQ(graph.metric(), Metric::InnerProduct);
    expect_valid_graph(graph, view_of(rows, 8));
    EXPECT_TRUE(std::equal(before.begin(), before.end(), index.codes.begin()));
}

TEST_P(Builders, FindNeighboursOnRealVectors) {
    const gnnd::VectorView vectors = sample(2000);
    const VectorSource source(vectors, Metric::L2);
    const gnnd::KnnGraph graph = builder->build(source, 20);
    expect_valid_graph(graph, vectors);
    const double expected = GetParam().starts_with("ex") ? 1 : GetParam() == "ivfpq" ? 0.5 : 0.98;
    EXPECT_GE(faiss_ext::recall(source, graph, 10, 0).value, expected);
}

TEST_P(Builders, RefuseBadInput) {
    std::vector<float> rows = random_rows(100, 4);
    const VectorSource source(view_of(rows, 4), Metric::L2);
    for (const int k : {-1, 0, gnnd::kMaxK + 1})
        expect_faiss_error(std::to_string(k), [&] { builder->build(source, k); });
    const VectorSource single(gnnd::VectorView{rows.data(), 1, 4}, Metric::L2);
    expect_faiss_error("1 vectors", [&] { builder->build(single, 1); });
    rows[42 * 4 + 1] = NAN;
    expect_faiss_error("vector 42 holds NaN", [&] { builder->build(source, 5); });
}

TEST_P(Builders, HonourFaissInterrupts) {
    struct Always : faiss::InterruptCallback {
        bool want_interrupt() override { return true; }
    };
    const VectorSource source(sample(2000), Metric::L2);
    faiss::InterruptCallback::instance = std::make_unique<Always>();
    expect_faiss_error("computation interrupted", [&] { builder->build(source, 5); });
    faiss::InterruptCallback::clear_instance();
}

TEST(GraphBuilder, UnknownNamesAreRefused) {
    expect_faiss_error("'nnd'; there are gnnd, exhaustive, exact, ivfpq, nndescent", [] { make_graph_builder("nnd"); });
    expect_faiss_error(
        "graph builder ivfpq has no option 'probes'; it has nlist, code-bytes, nprobe, points-per-centroid, seed", [] {
            make_graph_builder("ivfpq", {}, {{"probes", 3}});
        });
    expect_faiss_error("graph builder exact has no option 'seed'; it has none", [] {
        make_graph_builder("exact", {}, {{"seed", 3}});
    });
}

TEST(GraphBuilder, OptionsReachTheParameters) {
    const auto ivfpq = make_graph_builder(
        "ivfpq", {}, {{"nlist", 11}, {"code-bytes", 12}, {"nprobe", 13}, {"points-per-centroid", 40}});
    const auto& params = dynamic_cast<const IvfpqGraphBuilder&>(*ivfpq).params;
    EXPECT_EQ(params.nlist, 11);
    EXPECT_EQ(params.code_bytes, 12);
    EXPECT_EQ(params.nprobe, 13);
    EXPECT_EQ(params.points_per_centroid, 40);
    EXPECT_EQ(params.seed, faiss_ext::IvfpqParams().seed);
    const auto nndescent = make_graph_builder("nndescent", {}, {{"iterations", 14}, {"seed", -1}});
    EXPECT_EQ(dynamic_cast<const NNDescentGraphBuilder&>(*nndescent).params.iterations, 14);
    EXPECT_EQ(dynamic_cast<const NNDescentGraphBuilder&>(*nndescent).params.seed, ~std::uint64_t(0));
}

// k and the metric are build()'s.
template <class Params>
constexpr bool kHasK = requires(Params params) {
    params.k;
};
static_assert(kHasK<gnnd::BuildParams> && !kHasK<faiss_ext::GnndParams>);

TEST(GnndGraphBuilder, PassesParametersAndCallbacksOn) {
    const VectorSource source(sample(2000), Metric::L2);
    GnndGraphBuilder builder;
    builder.params.device.kind = gnnd::Device::Kind::cpu;
    builder.params.threads = 1;
    builder.params.iterations = 2;
    int calls = 0, asked = 0;
    builder.callbacks.progress = [&](const gnnd::IterationStats&) { ++calls; };
    builder.callbacks.interrupt = [&] { return ++asked < 0; };
    const gnnd::KnnGraph graph = builder.build(source, 10);
    EXPECT_EQ(builder.stats.threads, 1);
    EXPECT_EQ(calls, int(builder.stats.iterations.size()));
    EXPECT_GT(asked, 0);
    const gnnd::KnnGraph again = builder.build(source, 10);
    EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + graph.n() * graph.k(), again.ids()));

    builder.callbacks.interrupt = [] { return true; };
    expect_faiss_error("computation interrupted", [&] { builder.build(source, 10); });
    builder.callbacks = {};
    builder.params.delta = -1;
    expect_faiss_error("delta", [&] { builder.build(source, 10); });
}

TEST(ExactGraphBuilder, AgreesWithTheReference) {
    for (const Metric metric : kMetrics) {
        SCOPED_TRACE(std::string(gnnd::name_of(metric)));
        const auto vectors = random_vectors(400, 17, DType::f32, true);
        const std::vector<std::int32_t> objects = {399, 0, 200, 0};
        ExactGraphBuilder builder;
        builder.batch = 3;
        const gnnd::KnnGraph graph = builder.search(VectorSource(vectors, metric), objects, 9);
        expect_valid_graph(graph, vectors, &objects);
        const gnnd::KnnGraph expected = gnnd::exact_neighbors(vectors, objects.data(), 4, 9, metric);
        EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 4 * 9, expected.ids()));
    }
}

/// Expects that the exact graph of L2 has the ids that gnnd finds without expanding |x-y|^2.
void expect_exact(const std::vector<float>& rows, std::int64_t d) {
    const gnnd::VectorView vectors = view_of(rows, d);
    const gnnd::KnnGraph graph = ExactGraphBuilder().build(VectorSource(vectors, Metric::L2), 10);
    std::vector<std::int32_t> all(vectors.n);
    std::iota(all.begin(), all.end(), 0);
    const gnnd::KnnGraph expected = gnnd::exact_neighbors(vectors, all.data(), vectors.n, 10, Metric::L2);
    EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + vectors.n * 10, expected.ids()));
}

// |x|^2 is some 3e7 here and the distances some 64: FAISS's expanded form has no digits left for them.
TEST(ExactGraphBuilder, IsExactFarFromTheOrigin) {
    std::vector<float> rows = random_rows(500, 32);
    for (float& c : rows) c += 1000;
    expect_exact(rows, 32);
}

// Here FAISS reports 0 for some of the neighbours and tens of thousands for others that are just as near, so that the
// first nine look as if they were right.
TEST(ExactGraphBuilder, IsExactInClustersFarFromTheOrigin) {
    constexpr int kCluster = 30;
    const std::vector<float> centres = random_rows(500 / kCluster + 1, 32, false, 2);
    std::vector<float> rows = random_rows(500, 32);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = 100000 + 1000 * centres[i / 32 / kCluster * 32 + i % 32] + 0.1f * rows[i];
    expect_exact(rows, 32);
}

TEST(ExactGraphBuilder, RefusesObjectsThatAreNotThere) {
    const VectorSource source(sample(50), Metric::L2);
    ExactGraphBuilder builder;
    expect_faiss_error("object 50 is not in 0 to 49", [&] { builder.search(source, {3, 50}, 2); });
    expect_faiss_error("object -1", [&] { builder.search(source, {-1}, 2); });
    builder.batch = -1;
    expect_faiss_error("batch is -1", [&] { builder.build(source, 2); });
    builder.batch = 10;
    EXPECT_EQ(builder.search(source, {}, 2).n(), 0);
}

TEST(NNDescentGraphBuilder, RefusesBadParameters) {
    const VectorSource source(sample(200), Metric::L2);
    NNDescentGraphBuilder builder;
    builder.params.L = 5;
    expect_faiss_error("L 5", [&] { builder.build(source, 10); });
    builder.params = {};
    builder.params.S = 1;
    expect_faiss_error("S 1", [&] { builder.build(source, 10); });
    builder.params = {};
    builder.params.iterations = 0;
    expect_valid_graph(builder.build(source, 30), sample(200));
}

TEST(WithoutAGpu, WhatNeedsOneSaysSo) {
    std::string why = "no GPU support";
    if (faiss_ext::faiss_has_gpu() && gnnd::device_count(&why) > 0) GTEST_SKIP() << "there is one";
    const auto vectors = random_vectors(300, 8, DType::f32);
    const VectorSource source(vectors, Metric::L2);
    // Never asked anything: without a GPU FAISS would end the process.
    const faiss_ext::Gpu gpu{reinterpret_cast<faiss::gpu::GpuResourcesProvider*>(&why), 0};
    expect_faiss_error(why, [] { faiss_ext::standard_gpu_resources(); });
    expect_faiss_error(why, [&] { faiss_ext::FaissResources{gpu}; });
    expect_faiss_error(why, [&] { GnndGraphBuilder{gpu.resources}; });
    expect_faiss_error(why, [&] { ExactGraphBuilder(gpu).build(source, 5); });
    expect_faiss_error(why, [&] { IvfpqGraphBuilder({}, gpu).build(source, 5); });
    expect_faiss_error(why, [&] { faiss_ext::recall(source, ExactGraphBuilder().build(source, 5), 5, 0, 1, gpu); });
    expect_faiss_error(why, [&] { faiss_ext::optimize_graph(source, ExactGraphBuilder().build(source, 5), 4, gpu); });
    expect_faiss_error(why, [&] { make_graph_builder("gnnd", gpu); });
}

}  // namespace
