// faiss_ext on the GPU side of FAISS: its resources and its indexes.
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/VectorTransform.h>
#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>
#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>
#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/impl/AuxIndexStructures.h>

#include <memory>
#include <numeric>
#include <optional>

#include "faiss_ext/adapters.h"
#include "faiss_ext/evaluate.h"
#include "faiss_ext/faiss_resources.h"
#include "faiss_ext/graph_builder.h"
#include "faiss_ext/optimize.h"
#include "gnnd/error.h"
#include "tests/faiss_helpers.h"
#include "tests/gpu.h"
#include "tests/invariants.h"

namespace {

using faiss_ext::ExactGraphBuilder;
using faiss_ext::FaissResources;
using faiss_ext::GnndConfig;
using faiss_ext::GnndGraphBuilder;
using faiss_ext::Gpu;
using faiss_ext::idx_t;
using faiss_ext::IvfpqGraphBuilder;
using faiss_ext::VectorSource;
using gnnd::DType;
using gnnd::Metric;
using gnnd::test::expect_faiss_error;
using gnnd::test::expect_valid_graph;
using gnnd::test::OnDevice;
using gnnd::test::random_rows;
using gnnd::test::random_vectors;
using gnnd::test::sample;
using gnnd::test::view_of;

constexpr int kDim = 24;
constexpr idx_t kRows = 3000;

class FaissGpu : public testing::Test {
  protected:
    void SetUp() override {
        SKIP_WITHOUT_GPU();
        resources.emplace();
    }

    /// Bytes that the driver has free.
    static std::size_t driver_free() {
        std::size_t free = 0, total = 0;
        GNND_CUDA(cudaMemGetInfo(&free, &total));
        return free;
    }
    /// Bytes that FAISS's resources hold, temporary memory as a whole.
    std::size_t faiss_held() {
        auto by_device = resources->getMemoryInfo();
        std::size_t held = 0;
        for (const auto& [type, count_and_bytes] : by_device[0]) held += count_and_bytes.second;
        return held;
    }
    GnndGraphBuilder builder() { return GnndGraphBuilder(&*resources); }
    Gpu gpu() { return {&*resources, 0}; }

    /// FAISS is as usable as before.
    void expect_usable() {
        faiss::gpu::GpuIndexFlatL2 index(&*resources, kDim);
        index.add(kRows, rows.data());
        std::vector<float> distances(10);
        std::vector<idx_t> labels(10);
        index.search(10, rows.data(), 1, distances.data(), labels.data());
        for (idx_t i = 0; i < 10; ++i) EXPECT_EQ(labels[i], i);
    }

    std::optional<faiss::gpu::StandardGpuResources> resources;
    const std::vector<float> rows = random_rows(kRows, kDim);
};

// Resources in.

TEST_F(FaissGpu, BuildsTakeTemporaryMemoryAndNothingElse) {
    faiss::gpu::GpuIndexFlatL2 index(&*resources, kDim);
    index.add(kRows, rows.data());
    const VectorSource source(&index);
    GnndGraphBuilder gnnd = builder();
    OnDevice<std::int32_t> ids(kRows * 32);
    OnDevice<float> distances(kRows * 32);
    gnnd.build_into(source, 32, ids, distances);  // loads the kernels, which takes memory once
    constexpr std::size_t kTemporary = std::size_t(1) << 30;
    resources->setTempMemory(kTemporary);
    const std::size_t free = driver_free(), available = resources->getResources()->getTempMemoryAvailable(0);
    int calls = 0;
    gnnd.callbacks.progress = [&](const gnnd::IterationStats&) {
        ++calls;
        EXPECT_EQ(driver_free(), free) << "memory was taken from the driver";
        EXPECT_LT(resources->getResources()->getTempMemoryAvailable(0), available - std::size_t(1000000));
    };
    gnnd.build_into(source, 32, ids, distances);
    EXPECT_GT(calls, 1);
    EXPECT_EQ(driver_free(), free);
    EXPECT_EQ(resources->getResources()->getTempMemoryAvailable(0), available);
}

TEST_F(FaissGpu, WithoutTemporaryMemoryBuildsTakeDeviceMemoryThroughFaiss) {
    for (const std::size_t temporary : {std::size_t(0), std::size_t(1) << 16}) {
        resources->setTempMemory(temporary);
        const VectorSource source(view_of(rows, kDim), Metric::L2);
        GnndGraphBuilder gnnd = builder();
        gnnd.build(source, 32);
        const std::size_t free = driver_free(), held = faiss_held();
        std::size_t most = 0;
        gnnd.callbacks.progress = [&](const gnnd::IterationStats&) {
            most = std::max(most, faiss_held());
            // The driver gives memory in pages of 2 MiB.
            EXPECT_LE(free - driver_free(), faiss_held() - held + (4 << 20));
        };
        const gnnd::KnnGraph graph = gnnd.build(source, 32);
        EXPECT_GE(most - held, std::size_t(gnnd.stats.peak_work_bytes)) << temporary;
        EXPECT_EQ(faiss_held(), held);
        EXPECT_EQ(driver_free(), free);
        expect_valid_graph(graph, view_of(rows, kDim));
    }
}

TEST_F(FaissGpu, BuildsRunOnFaissStreams) {
    cudaStream_t stream;
    GNND_CUDA(cudaStreamCreate(&stream));
    resources->setDefaultStream(0, stream);
    FaissResources faiss_resources(gpu());
    EXPECT_EQ(faiss_resources.stream(), stream);
    EXPECT_EQ(faiss_resources.staging().stream, resources->getResources()->getAsyncCopyStream(0));
    EXPECT_NE(faiss_resources.staging().data, nullptr);
    expect_valid_graph(builder().build(VectorSource(view_of(rows, kDim), Metric::L2), 10), view_of(rows, kDim));
    resources->setDefaultNullStreamAllDevices();
    for (int round = 0; round < 2; ++round) {  // FAISS orders what follows behind the streams of before
        expect_valid_graph(builder().build(VectorSource(view_of(rows, kDim), Metric::L2), 10), view_of(rows, kDim));
        expect_usable();
    }
    resources->revertDefaultStream(0);
    GNND_CUDA(cudaStreamDestroy(stream));
}

TEST_F(FaissGpu, CopiesGoThroughThePinnedBufferOfAnySize) {
    // More than the buffer at once, rows with gaps, and buffers of odd sizes or none.
    const auto vectors = random_vectors(20000, 100, DType::u8);
    gnnd::VectorView gaps = vectors;
    gaps.n = 10000;
    gaps.stride = 2 * gaps.row_bytes();
    for (const std::size_t bytes : {std::size_t(0), std::size_t(399), std::size_t(1'000'003), std::size_t(64) << 20}) {
        SCOPED_TRACE(bytes);
        faiss::gpu::StandardGpuResources own;
        own.setPinnedMemory(bytes);
        GnndConfig config;
        config.params.deterministic = true;
        GnndGraphBuilder staged(&own, config);
        config.params.device = {gnnd::Device::Kind::cuda, 0};
        GnndGraphBuilder plain(config.params);
        for (const gnnd::VectorView& view : {vectors.view(), gaps}) {
            const VectorSource source(view, Metric::L2);
            const gnnd::KnnGraph a = staged.build(source, 40), b = plain.build(source, 40);
            EXPECT_TRUE(std::equal(a.ids(), a.ids() + a.n() * a.k(), b.ids()));
            EXPECT_TRUE(std::equal(a.distances(), a.distances() + a.n() * a.k(), b.distances()));
        }
    }
}

TEST_F(FaissGpu, ResourcesAlignAndGiveBack) {
    FaissResources faiss_resources(gpu());
    const gnnd::Stream stream = faiss_resources.stream();
    const std::size_t held = faiss_held();
    std::vector<void*> taken;
    for (const std::size_t bytes : {std::size_t(1), std::size_t(1000), std::size_t(3) << 30}) {
        taken.push_back(faiss_resources.allocate_device(bytes, stream));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken.back()) % 256, 0u);
        GNND_CUDA(cudaMemset(taken.back(), 1, bytes));
    }
    for (; !taken.empty(); taken.pop_back()) faiss_resources.deallocate_device(taken.back(), 0, stream);
    EXPECT_EQ(faiss_held(), held);
    EXPECT_GT(faiss_resources.free_device_memory(), std::size_t(1) << 30);
    void* host = faiss_resources.allocate(1000);
    faiss_resources.deallocate(host, 1000);
}

TEST_F(FaissGpu, RefusesResourcesThatAreNotThere) {
    expect_faiss_error("null", [] { GnndGraphBuilder(nullptr, GnndConfig()); });
    for (const int device : {-1, 999}) {
        GnndConfig config;
        config.device = device;
        expect_faiss_error("there is no GPU " + std::to_string(device), [&] { GnndGraphBuilder(&*resources, config); });
        const VectorSource source(view_of(rows, kDim), Metric::L2);
        expect_faiss_error("there is no GPU", [&] { ExactGraphBuilder({&*resources, device}).build(source, 5); });
        expect_faiss_error("there is no GPU", [&] { IvfpqGraphBuilder({}, {&*resources, device}).build(source, 5); });
    }
}

TEST_F(FaissGpu, RefusesVectorsOnAnotherDevice) {
    if (gnnd::cuda::device_count() < 2) GTEST_SKIP() << "one GPU only";
    faiss::gpu::GpuIndexFlatConfig config;
    config.device = 1;
    faiss::gpu::GpuIndexFlatL2 index(&*resources, kDim, config);
    index.add(kRows, rows.data());
    const VectorSource source(&index);
    EXPECT_EQ(source.device(), 1);
    GnndGraphBuilder gnnd = builder();
    expect_faiss_error("cuda:1", [&] { gnnd.build(source, 5); });
    GnndConfig there;
    there.device = 1;
    expect_valid_graph(GnndGraphBuilder(&*resources, there).build(source, 5), view_of(rows, kDim));
    expect_valid_graph(GnndGraphBuilder().build(source, 5), view_of(rows, kDim));  // goes where the vectors are
}

// Faults.

TEST_F(FaissGpu, OutOfMemoryMidwayLeavesFaissUsable) {
    resources->setTempMemory(1 << 20);
    expect_usable();
    const auto vectors = random_vectors(200000, 32, DType::f32);
    const VectorSource source(vectors, Metric::L2);
    GnndGraphBuilder gnnd = builder();
    {
        // All but some MiB.
        std::vector<void*> hog;
        for (std::size_t bytes = driver_free(); bytes > (8 << 20);) {
            void* taken = nullptr;
            if (cudaMalloc(&taken, bytes) == cudaSuccess)
                hog.push_back(taken);
            else
                bytes /= 2;
            cudaGetLastError();
        }
        expect_faiss_error("bytes", [&] { gnnd.build(source, 64); });
        ExactGraphBuilder exact(gpu());
        exact.device_memory = std::int64_t(1) << 33;
        expect_faiss_error("alloc fail", [&] { exact.build(source, 5); });
        for (void* taken : hog) GNND_CUDA(cudaFree(taken));
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    expect_usable();
    EXPECT_EQ(gnnd.build(source, 10).n(), 200000);
}

struct InterruptAfter : faiss::InterruptCallback {
    explicit InterruptAfter(int questions) : left(questions) {}
    bool want_interrupt() override { return --left < 0; }
    int left;
};

TEST_F(FaissGpu, InterruptedBuildsLeaveFaissUsable) {
    const auto vectors = random_vectors(100000, 32, DType::f32);
    const VectorSource source(vectors, Metric::L2);
    for (const char* name : {"gnnd", "exact", "ivfpq"}) {
        SCOPED_TRACE(name);
        const auto builder = faiss_ext::make_graph_builder(name, gpu());
        const std::size_t held = faiss_held();
        faiss::InterruptCallback::instance = std::make_unique<InterruptAfter>(2);
        expect_faiss_error("interrupted", [&] { builder->build(source, 20); });
        faiss::InterruptCallback::clear_instance();
        EXPECT_EQ(faiss_held(), held);
        expect_usable();
    }
}

// Indexes in.

class FaissGpuIndexes : public FaissGpu {
  protected:
    /// The source's vectors, on the host, as float32.
    static std::vector<float> read(const VectorSource& source) {
        const gnnd::VectorView& x = source.on_host();
        std::vector<float> read(x.n * x.d);
        gnnd::copy_as_f32(x, 0, x.n, read.data());
        return read;
    }
    std::vector<idx_t> own_ids() const {
        std::vector<idx_t> ids(kRows);
        for (idx_t i = 0; i < kRows; ++i) ids[i] = 7 * (kRows - i);
        return ids;
    }
    /// A graph of the index is right, and the index afterwards as before.
    void expect_graph(const faiss::Index& index, const VectorSource& source) {
        std::vector<float> distances(20), again(20);
        std::vector<idx_t> labels(20), labels_again(20);
        index.search(4, rows.data(), 5, distances.data(), labels.data());
        const gnnd::KnnGraph graph = builder().build(source, 10);
        expect_valid_graph(graph, source.on_host());
        EXPECT_GT(faiss_ext::recall(source, graph, 10, 0, 1, gpu()).value, 0.97);
        index.search(4, rows.data(), 5, again.data(), labels_again.data());
        EXPECT_EQ(distances, again);
        EXPECT_EQ(labels, labels_again);
        EXPECT_EQ(index.ntotal, kRows);
    }
};

TEST_F(FaissGpuIndexes, FlatIsReadInPlace) {
    for (const bool float16 : {false, true})
        for (const auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            faiss::gpu::GpuIndexFlatConfig config;
            config.useFloat16 = float16;
            faiss::gpu::GpuIndexFlat index(&*resources, kDim, metric, config);
            index.add(kRows, rows.data());
            const VectorSource source(&index);
            EXPECT_EQ(source.device(), 0);
            EXPECT_EQ(source.vectors().dtype, float16 ? DType::f16 : DType::f32);
            const std::size_t free = driver_free();
            EXPECT_EQ(VectorSource(&index).vectors().data, source.vectors().data);
            EXPECT_EQ(driver_free(), free);
            std::vector<float> expected(kRows * kDim);
            index.reconstruct_n(0, kRows, expected.data());
            EXPECT_EQ(read(source), expected);
            EXPECT_TRUE(source.ids().empty());
            expect_graph(index, source);
        }
}

TEST_F(FaissGpuIndexes, WrappedOnesKeepTheirIds) {
    faiss::gpu::GpuIndexFlatL2 flat(&*resources, kDim);
    faiss::IndexIDMap map(&flat);
    const std::vector<idx_t> ids = own_ids();
    map.add_with_ids(kRows, rows.data(), ids.data());
    const VectorSource source(&map);
    EXPECT_EQ(source.device(), 0);
    EXPECT_EQ(source.ids(), ids);
    EXPECT_EQ(read(source), rows);
    expect_graph(map, source);

    faiss::gpu::GpuIndexFlatL2 inner(&*resources, kDim);
    faiss::RandomRotationMatrix rotation(kDim, kDim);
    rotation.init(3);
    faiss::IndexPreTransform rotated(&rotation, &inner);
    rotated.add(kRows, rows.data());
    const VectorSource in_its_space(&rotated);
    EXPECT_EQ(in_its_space.device(), 0);
    std::unique_ptr<const float[]> expected(rotation.apply(kRows, rows.data()));
    const std::vector<float> got = read(in_its_space);
    for (idx_t i = 0; i < kRows * kDim; ++i) ASSERT_FLOAT_EQ(got[i], expected[i]);
    expect_graph(rotated, in_its_space);
}

/// What the CPU's index of the same kind decodes, in the order of the ids.
template <class GpuIndex>
void expect_same_rows(const GpuIndex& index, const faiss::IndexIVF& cpu, const std::vector<float>& got,
                      const VectorSource& source) {
    const VectorSource expected(&cpu);
    std::vector<float> rows(kRows * kDim);
    gnnd::copy_as_f32(expected.vectors(), 0, kRows, rows.data());
    EXPECT_EQ(got, rows);
    EXPECT_EQ(source.ids(), expected.ids());
    EXPECT_EQ(index.ntotal, kRows);
}

TEST_F(FaissGpuIndexes, InvertedListsAreReadInTheOrderOfTheIds) {
    const std::vector<idx_t> ids = own_ids();
    const auto fill = [&](faiss::Index& index) {
        index.train(kRows, rows.data());
        index.add_with_ids(kRows, rows.data(), ids.data());
    };
    std::vector<idx_t> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    {
        faiss::gpu::GpuIndexIVFFlat index(&*resources, kDim, 20, faiss::METRIC_L2);
        fill(index);
        const VectorSource source(&index);
        EXPECT_EQ(source.ids(), sorted);
        const std::vector<float> got = read(source);
        for (idx_t i = 0; i < kRows; ++i)
            ASSERT_TRUE(std::equal(rows.end() - (i + 1) * kDim, rows.end() - i * kDim, got.begin() + i * kDim)) << i;
        faiss::IndexFlatL2 quantizer(kDim);
        faiss::IndexIVFFlat cpu(&quantizer, kDim, 20);
        index.copyTo(&cpu);
        expect_same_rows(index, cpu, got, source);
        index.nprobe = 20;
        expect_graph(index, source);
    }
    {
        faiss::gpu::GpuIndexIVFScalarQuantizer index(&*resources, kDim, 20, faiss::ScalarQuantizer::QT_8bit);
        fill(index);
        const VectorSource source(&index);
        EXPECT_EQ(source.ids(), sorted);
        faiss::IndexFlatL2 quantizer(kDim);
        faiss::IndexIVFScalarQuantizer cpu(&quantizer, kDim, 20, faiss::ScalarQuantizer::QT_8bit);
        index.copyTo(&cpu);
        expect_same_rows(index, cpu, read(source), source);
        expect_graph(index, source);
    }
    {
        faiss::gpu::GpuIndexIVFPQ index(&*resources, kDim, 20, 8, 8, faiss::METRIC_L2);
        fill(index);
        const VectorSource source(&index);
        EXPECT_EQ(source.ids(), sorted);
        faiss::IndexFlatL2 quantizer(kDim);
        faiss::IndexIVFPQ cpu(&quantizer, kDim, 20, 8, 8);
        index.copyTo(&cpu);
        expect_same_rows(index, cpu, read(source), source);
        const gnnd::KnnGraph graph = builder().build(source, 10);
        expect_valid_graph(graph, source.on_host());
    }
}

TEST_F(FaissGpuIndexes, RefusesIndexesWithoutVectors) {
    faiss::gpu::GpuIndexFlatL2 empty(&*resources, kDim);
    expect_faiss_error("GpuIndexFlatL2 is empty", [&] { VectorSource{&empty}; });
    empty.add(1, rows.data());
    const VectorSource one(&empty);
    GnndGraphBuilder gnnd = builder();
    expect_faiss_error("1 vectors", [&] { gnnd.build(one, 5); });
    expect_faiss_error("1 vectors", [&] { ExactGraphBuilder(gpu()).build(one, 5); });

    faiss::gpu::GpuIndexIVFFlat untrained(&*resources, kDim, 20, faiss::METRIC_L2);
    expect_faiss_error("not trained", [&] { VectorSource{&untrained}; });
    faiss::gpu::GpuIndexIVFFlatConfig config;
    config.indicesOptions = faiss::gpu::INDICES_IVF;
    faiss::gpu::GpuIndexIVFFlat without_ids(&*resources, kDim, 20, faiss::METRIC_L2, config);
    without_ids.train(kRows, rows.data());
    without_ids.add(kRows, rows.data());
    expect_faiss_error("GpuIndexIVFFlat", [&] { VectorSource{&without_ids}; });

    faiss::gpu::GpuIndexFlat canberra(&*resources, kDim, faiss::METRIC_Canberra);
    canberra.add(kRows, rows.data());
    expect_faiss_error("metric", [&] { VectorSource{&canberra}; });
}

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
            gnnd::BuildParams on_cpu;
            on_cpu.device.kind = gnnd::Device::Kind::cpu;
            expect_valid_graph(GnndGraphBuilder(on_cpu).build(source, 12), vectors);
            EXPECT_GT(faiss_ext::recall(source, graph, 10, 0, 1, gpu()).value, 0.97);

            OnDevice<std::int32_t> ids(n * 12);
            OnDevice<float> distances(n * 12);
            GnndConfig config;
            config.params.deterministic = true;
            GnndGraphBuilder gnnd(&*resources, config);
            gnnd.build_into(source, 12, ids, distances);
            const gnnd::KnnGraph same = gnnd.build(source, 12);
            EXPECT_EQ(ids.read(), std::vector<std::int32_t>(same.ids(), same.ids() + n * 12));
            EXPECT_EQ(distances.read(), std::vector<float>(same.distances(), same.distances() + n * 12));
        }
}

// Beside: baselines.

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
    on_gpu.params.nprobe = 4000;
    expect_faiss_error("nprobe 4000", [&] { on_gpu.build(source, 5); });
}

TEST_F(FaissGpu, ABuildersDeviceIsThatOfItsResources) {
    const VectorSource source(view_of(rows, kDim), Metric::L2);
    GnndGraphBuilder gnnd = builder();
    gnnd.params = gnnd::BuildParams();
    gnnd.params.device.kind = gnnd::Device::Kind::cpu;
    gnnd.build(source, 10);
    EXPECT_TRUE(gnnd.on_gpu);
    if (gnnd::cuda::device_count() < 2) return;
    FaissResources second({&*resources, 1});
    gnnd::BuildParams first;
    first.device = {gnnd::Device::Kind::cuda, 0};
    expect_faiss_error("for GPU 1", [&] { gnnd::build(view_of(rows, kDim), first, {}, &second); });
}

TEST_F(FaissGpu, EveryBuilderComesByName) {
    const VectorSource source(sample(2000), Metric::L2);
    for (const char* name : {"gnnd", "exact", "ivfpq", "nndescent"}) {
        const auto builder = faiss_ext::make_graph_builder(name, gpu());
        EXPECT_EQ(builder->name(), name);
        expect_valid_graph(builder->build(source, 10), source.vectors());
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
    expect_finds(*faiss_ext::to_hnsw(source, graph, {.M = 16, .upper_levels = true, .gpu = gpu()}));
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
