// SPDX-License-Identifier: MIT
// The builders of faiss_ext with a GPU of FAISS, and the graph indexes that are made there.
#include <faiss/IndexFlat.h>

#include "faiss_ext/adapters.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/exact_search.h"
#include "faiss_ext/faiss_resources.h"
#include "faiss_ext/optimize.h"
#include "tests/faiss_gpu.h"
#include "tests/truths.h"

namespace gnnd::test {
namespace {

using faiss_ext::exact_search;

TEST_F(FaissGpu, TakesRawDevicePointersOfEveryType) {
    for (const DType dtype : {DType::f32, DType::f16, DType::u8, DType::i8})
        for (const std::int64_t n : {std::int64_t(500), std::int64_t(kRows)}) {
            const auto vectors = random_vectors(n, kDim, dtype);
            const auto bytes = std::size_t(n) * kDim * size_of(dtype);
            const OnDevice<std::byte> copy(bytes, static_cast<const std::byte*>(vectors.view().data));
            const VectorSource source({copy.get(), n, kDim, dtype, 0}, Metric::L2);
            EXPECT_EQ(source.device(), 0);
            const gnnd::KnnGraph graph = builder().build(source, 12);
            expect_valid_graph(graph, vectors);
            expect_valid_graph(GnndGraphBuilder().build(source, 12), vectors);  // `auto` finds the GPU
            GnndParams on_cpu;
            on_cpu.device.kind = gnnd::Device::Kind::cpu;
            expect_valid_graph(GnndGraphBuilder(on_cpu).build(source, 12), vectors);
            EXPECT_GT(faiss_ext::recall(source, graph, 10, 0, 1, gpu()).value, 0.97);

            OnDevice<std::int32_t> ids(n * 12);
            OnDevice<float> distances(n * 12);
            GnndParams params;
            params.deterministic = true;
            GnndGraphBuilder gnnd(&*resources, params);
            gnnd.build_into(source, 12, ids, distances);
            const gnnd::KnnGraph same = gnnd.build(source, 12);
            EXPECT_EQ(ids.read(), std::vector<std::int32_t>(same.ids(), same.ids() + n * 12));
            EXPECT_EQ(distances.read(), std::vector<float>(same.distances(), same.distances() + n * 12));
        }
}

// Beside: baselines.

TEST_F(FaissGpu, RecallIsTheSameByBothTruths) {
    expect_same_truths({Device::Kind::cuda, 0}, gpu());
}

TEST_F(FaissGpu, ExactGraphsAreThoseOfTheCpu) {
    for (const Metric metric :
         {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1, Metric::Linf, Metric::ChiSquare}) {
        SCOPED_TRACE(std::string(gnnd::name_of(metric)));
        const auto vectors = random_vectors(2000, 20, DType::u8);
        const VectorSource source(vectors, metric);
        const gnnd::KnnGraph expected = ExactGraphBuilder().build(source, 12);
        ExactGraphBuilder builder(gpu());
        for (const std::int64_t memory : {0, 700 * 20 * 4}) {
            for (const idx_t batch : {0, 300}) {
                builder.device_memory = memory;
                builder.batch = batch;
                const gnnd::KnnGraph graph = builder.build(source, 12);
                EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 2000 * 12, expected.ids()));
                EXPECT_TRUE(std::equal(graph.distances(), graph.distances() + 2000 * 12, expected.distances()));
            }
        }
        const std::vector<std::int32_t> objects{7, 3, 1999};
        const gnnd::KnnGraph some = builder.search(source, objects, 12);
        for (int r = 0; r < 3; ++r)
            EXPECT_TRUE(std::equal(some.ids_of(r), some.ids_of(r) + 12, expected.ids_of(objects[r])));
    }
    // In place, whole and in parts of what is asked for; k beyond n; the largest k.
    const gnnd::VectorView real = sample(3000);
    std::vector<float> floats(3000 * 128);
    gnnd::copy_as_f32(real, 0, 3000, floats.data());
    faiss::gpu::GpuIndexFlatL2 index(&*resources, 128);
    index.add(3000, floats.data());
    const VectorSource on_gpu(&index), on_host(view_of(floats, 128), Metric::L2);
    for (const int k : {1, 64, 1024}) {
        const gnnd::KnnGraph graph = ExactGraphBuilder(gpu()).build(on_gpu, k);
        const gnnd::KnnGraph expected = ExactGraphBuilder().build(on_host, k);
        EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 3000 * k, expected.ids())) << k;
    }
    for (const int n : {2, 3, 20}) {
        const auto few = random_vectors(n, 3, DType::f32);
        expect_valid_graph(ExactGraphBuilder(gpu()).build(VectorSource(few, Metric::L2), 7), few);
    }
}

TEST_F(FaissGpu, ExactAnswersAreThoseOfTheCpu) {
    for (const Metric metric : gnnd::kMetrics) {
        SCOPED_TRACE(std::string(gnnd::name_of(metric)));
        const auto base = random_vectors(2000, 20, DType::u8), queries = random_vectors(150, 20, DType::u8, true, 2);
        const VectorSource source(base, metric);
        for (const int k : {1, 12, 1024}) {
            const gnnd::KnnGraph found = exact_search(source, queries, k, gpu());
            const gnnd::KnnGraph expected = exact_search(source, queries, k);
            // Of ties beyond what FAISS reports it chooses itself.
            EXPECT_TRUE(std::equal(found.distances(), found.distances() + 150 * k, expected.distances())) << k;
            const bool same = std::equal(found.ids(), found.ids() + 150 * k, expected.ids());
            EXPECT_TRUE(same || metric == Metric::Linf) << k;
        }
    }
    // Vectors that FAISS reads where they are.
    std::vector<float> floats(3000 * 128);
    gnnd::copy_as_f32(sample(3000), 0, 3000, floats.data());
    const OnDevice<float> base(2900 * 128, floats.data());
    const gnnd::VectorView queries{floats.data() + 2900 * 128, 100, 128, DType::f32, 0};
    const VectorSource on_gpu({base.get(), 2900, 128, DType::f32, 0}, Metric::L2);
    const VectorSource on_host({floats.data(), 2900, 128, DType::f32, 0}, Metric::L2);
    const gnnd::KnnGraph found = exact_search(on_gpu, queries, 10, gpu());
    const gnnd::KnnGraph expected = exact_search(on_host, queries, 10);
    EXPECT_TRUE(std::equal(found.ids(), found.ids() + 100 * 10, expected.ids()));
}

TEST_F(FaissGpu, IvfpqGraphsAreLikeThoseOfTheCpu) {
    const gnnd::test::OneFaissThread quiet;
    const VectorSource source(sample(10000), Metric::L2);
    IvfpqGraphBuilder on_cpu, on_gpu({}, gpu());
    const gnnd::KnnGraph a = on_cpu.build(source, 20), b = on_gpu.build(source, 20);
    expect_valid_graph(b, source.vectors());
    ASSERT_EQ(on_gpu.timing.size(), 3u);
    EXPECT_EQ(on_gpu.timing[0].step, "train");
    EXPECT_EQ(on_gpu.timing[1].step, "add");
    EXPECT_EQ(on_gpu.timing[2].step, "search");
    EXPECT_NEAR(faiss_ext::recall(source, a, 10).value, faiss_ext::recall(source, b, 10).value, 0.03);
    // Codes that FAISS has not on GPUs are shortened; few vectors and odd dimensions work.
    for (const int n : {2, 255, 256, 1000})
        for (const int d : {1, 66}) {
            SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(d));
            const auto vectors = random_vectors(n, d, DType::f32);
            for (const Metric metric : {Metric::L2, Metric::InnerProduct}) {
                IvfpqGraphBuilder builder({}, gpu());
                builder.params.code_bytes = 100;
                expect_valid_graph(builder.build(VectorSource(vectors, metric), 5), vectors);
            }
        }
    on_gpu.keep_index = true;
    on_gpu.build(source, 20);
    const double trained = on_gpu.timing[0].seconds;
    on_gpu.params.nprobe = 2;
    const gnnd::KnnGraph narrow = on_gpu.build(source, 20);
    EXPECT_EQ(on_gpu.timing[0].seconds, trained);
    EXPECT_LT(faiss_ext::recall(source, narrow, 10).value, faiss_ext::recall(source, b, 10).value);
    on_gpu.params.nprobe = 4000;
    expect_faiss_error("nprobe 4000", [&] { on_gpu.build(source, 5); });
}

TEST_F(FaissGpu, ABuildersDeviceIsThatOfItsParameters) {
    const VectorSource source(view_of(rows, kDim), Metric::L2);
    GnndGraphBuilder gnnd = builder();
    gnnd.build(source, 10);
    EXPECT_TRUE(gnnd.on_gpu);
    gnnd.params.device.kind = gnnd::Device::Kind::cpu;
    expect_faiss_error("params.device is cpu", [&] { gnnd.build(source, 10); });
    gnnd.params.device = {gnnd::Device::Kind::cuda, 999};
    expect_faiss_error("there is no GPU 999", [&] { gnnd.build(source, 10); });
    if (gnnd::cuda::device_count() < 2) return;
    FaissResources second({&*resources, 1});
    gnnd::BuildParams first;
    first.device = {gnnd::Device::Kind::cuda, 0};
    expect_faiss_error("for GPU 1", [&] { gnnd::build(view_of(rows, kDim), first, {}, &second); });
}

TEST_F(FaissGpu, EveryBuilderComesByName) {
    const VectorSource source(sample(2000), Metric::L2);
    for (const auto& type : faiss_ext::graph_builder_types()) {
        const auto builder = faiss_ext::make_graph_builder(type.name, gpu());
        EXPECT_EQ(builder->name(), type.name);
        expect_valid_graph(builder->build(source, 10), source.vectors());
        EXPECT_EQ(builder->on_gpu, type.gpu);
    }
    EXPECT_TRUE(faiss_ext::faiss_has_gpu());
    EXPECT_NE(faiss_ext::standard_gpu_resources(), nullptr);
}

// Out: graph indexes.

TEST_F(FaissGpu, GraphIndexesAreMadeFromGpuIndexes) {
    const gnnd::VectorView real = sample(5000);
    std::vector<float> floats(5000 * 128);
    gnnd::copy_as_f32(real, 0, 5000, floats.data());
    faiss::gpu::GpuIndexFlatL2 index(&*resources, 128);
    index.add(5000, floats.data());
    const VectorSource source(&index);
    const gnnd::KnnGraph graph = builder().build(source, 32);
    std::vector<float> truth(1000 * 10), distances(1000 * 10);
    std::vector<idx_t> labels(1000 * 10);
    index.search(1000, floats.data(), 10, truth.data(), labels.data());
    const auto expect_finds = [&](const faiss::Index& made) {
        made.search(1000, floats.data(), 10, distances.data(), labels.data());
        int hits = 0;
        for (int i = 0; i < 1000 * 10; ++i) hits += distances[i] <= truth[i / 10 * 10 + 9];
        EXPECT_GT(hits / 1e4, 0.95);
    };
    expect_finds(*faiss_ext::to_nsg(source, graph));
    expect_finds(*faiss_ext::to_hnsw(source, graph));
    expect_finds(*faiss_ext::to_nndescent(source, graph));
    expect_finds(*faiss_ext::to_nsg(source, graph, {.R = 32, .gpu = gpu()}));
    expect_finds(*faiss_ext::to_hnsw(source, graph, {.M = 16, .gpu = gpu()}));
    expect_finds(*faiss_ext::to_hnsw(source, graph, {.M = 16, .base_level_only = true}));
    expect_finds(*faiss_ext::to_hnsw(source, graph, {.M = 16, .base_level_only = true, .gpu = gpu()}));
    expect_finds(*faiss_ext::to_nsg(source, graph, {.R = 200}));  // the CPU's, of what the index holds
    EXPECT_FALSE(source.copied_to_host());
    EXPECT_EQ(faiss_ext::optimize_graph(source, graph, 32).links,
              faiss_ext::optimize_graph(source, graph, 32, gpu()).links);
    EXPECT_FALSE(source.copied_to_host());
}

TEST_F(FaissGpu, GraphIndexesOfGpuIndexesRefuseWhatTheHostRefuses) {
    for (const bool float16 : {false, true}) {
        faiss::gpu::GpuIndexFlatConfig config;
        config.useFloat16 = float16;
        for (const auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::gpu::GpuIndexFlat index(&*resources, kDim, metric, config);
            index.add(kRows, rows.data());
            const VectorSource source(&index);
            const gnnd::KnnGraph graph = builder().build(source, 16);
            const auto nsg = faiss_ext::to_nsg(source, graph);
            std::vector<float> stored(kRows * kDim), expected(kRows * kDim);
            nsg->reconstruct_n(0, kRows, stored.data());
            index.reconstruct_n(0, kRows, expected.data());
            EXPECT_EQ(stored, expected);
            // A graph of other vectors, of which one is no number.
            std::vector<float> bad = rows;
            bad[(kRows - 1) * kDim + 3] = NAN;
            faiss::gpu::GpuIndexFlat broken(&*resources, kDim, metric, config);
            broken.add(kRows, bad.data());
            const VectorSource of_broken(&broken);
            expect_faiss_error("vector 2999 ", [&] { faiss_ext::to_nsg(of_broken, graph); });
            expect_faiss_error("vector 2999 ", [&] { faiss_ext::to_hnsw(of_broken, graph, {.gpu = gpu()}); });
            EXPECT_FALSE(of_broken.copied_to_host());
        }
    }
    expect_usable();
}

TEST_F(FaissGpu, CagraIsMadeWhereFaissHasIt) {
    const VectorSource source(sample(5000), Metric::L2);
    const gnnd::KnnGraph graph = builder().build(source, 32);
    if (!faiss_ext::faiss_has_cagra()) {
        expect_faiss_error("no GpuIndexCagra", [&] { faiss_ext::to_gpu_cagra(source, graph, {.gpu = gpu()}); });
        GTEST_SKIP() << "FAISS was built without cuVS";
    }
    expect_faiss_error("to_gpu_cagra", [&] { faiss_ext::to_gpu_cagra(source, graph); });
    expect_faiss_error("degree = 2", [&] { faiss_ext::to_gpu_cagra(source, graph, {.degree = 2, .gpu = gpu()}); });
    const std::shared_ptr<faiss::Index> index = faiss_ext::to_gpu_cagra(source, graph, {.gpu = gpu()});
    ASSERT_EQ(index->ntotal, 5000);
    std::vector<float> floats(5000 * 128);
    gnnd::copy_as_f32(source.vectors(), 0, 5000, floats.data());
    faiss::IndexFlatL2 flat(128);
    flat.add(5000, floats.data());
    std::vector<float> truth(1000 * 10), distances(1000 * 10);
    std::vector<idx_t> labels(1000 * 10);
    flat.search(1000, floats.data(), 10, truth.data(), labels.data());
    index->search(1000, floats.data(), 10, distances.data(), labels.data());
    int hits = 0;
    for (int i = 0; i < 1000 * 10; ++i) hits += distances[i] <= truth[i / 10 * 10 + 9];
    EXPECT_GT(hits / 1e4, 0.95);
}

TEST_F(FaissGpu, GraphsAreOptimizedAsOnTheCpu) {
    const VectorSource source(sample(5000), Metric::L2);  // uint8: distances are exact
    const gnnd::KnnGraph graph = builder().build(source, 64);
    const std::size_t held = faiss_held();
    for (const int degree : {16, 32, 128, 200}) {
        const faiss_ext::SearchGraph on_cpu = faiss_ext::optimize_graph(source, graph, degree);
        const faiss_ext::SearchGraph on_gpu = faiss_ext::optimize_graph(source, graph, degree, gpu());
        EXPECT_EQ(on_cpu.entry, on_gpu.entry);
        EXPECT_EQ(on_cpu.links, on_gpu.links) << degree;
    }
    EXPECT_EQ(faiss_held(), held);
    expect_faiss_error("there is no GPU 77", [&] { faiss_ext::optimize_graph(source, graph, 16, {&*resources, 77}); });
    // Small graphs with -1 entries, as NSG and NNDescent get them.
    const auto few = random_vectors(10, 4, DType::f32);
    const VectorSource tiny(few, Metric::L2);
    const gnnd::KnnGraph padded = builder().build(tiny, 20);
    EXPECT_EQ(faiss_ext::to_nsg(tiny, padded, {.R = 16, .gpu = gpu()})->ntotal, 10);
    EXPECT_EQ(faiss_ext::to_nndescent(tiny, padded)->ntotal, 10);
    const VectorSource other(random_vectors(11, 4, DType::f32), Metric::L2);
    expect_faiss_error("the graph has 10", [&] { faiss_ext::to_nsg(other, padded, {.R = 16, .gpu = gpu()}); });
}

}  // namespace
}  // namespace gnnd::test
