// SPDX-License-Identifier: MIT
// faiss_ext on the GPU side of FAISS: its resources.
#include <faiss/impl/AuxIndexStructures.h>

#include <memory>
#include <numeric>

#include "faiss_ext/evaluate.h"
#include "gnnd/error.h"
#include "tests/faiss_gpu.h"

namespace gnnd::test {
namespace {

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
        GnndParams params;
        params.deterministic = true;
        params.device = {gnnd::Device::Kind::cuda, 0};
        GnndGraphBuilder staged(&own, params), plain(params);
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

TEST_F(FaissGpu, TemporaryMemoryGoesBackInAnyOrder) {
    resources->setTempMemory(std::size_t(64) << 20);
    const auto available = [&] { return resources->getResources()->getTempMemoryAvailable(0); };
    constexpr std::size_t kBytes = 1 << 20;
    std::size_t before = 0;
    {
        FaissResources of_faiss(gpu());
        before = available();
        void* pieces[4];
        for (void*& piece : pieces) piece = of_faiss.allocate_device(kBytes, nullptr);
        const std::size_t all_taken = available();
        of_faiss.deallocate_device(pieces[1], kBytes, nullptr);
        of_faiss.deallocate_device(pieces[0], kBytes, nullptr);
        EXPECT_EQ(available(), all_taken);
        of_faiss.deallocate_device(pieces[3], kBytes, nullptr);
        EXPECT_GT(available(), all_taken);
        EXPECT_LT(available(), before);
        of_faiss.deallocate_device(pieces[2], kBytes, nullptr);
        EXPECT_EQ(available(), before);
        for (int i = 0; i < 3; ++i) of_faiss.allocate_device(kBytes, nullptr);
        EXPECT_LT(available(), before);
    }
    EXPECT_EQ(available(), before);
}

TEST_F(FaissGpu, RefusesResourcesThatAreNotThere) {
    expect_faiss_error("null", [] { GnndGraphBuilder(nullptr, GnndParams()); });
    for (const int device : {-1, 999}) {
        GnndParams params;
        params.device = {gnnd::Device::Kind::cuda, device};
        expect_faiss_error("there is no GPU " + std::to_string(device), [&] { GnndGraphBuilder(&*resources, params); });
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
    GnndParams there;
    there.device = {gnnd::Device::Kind::cuda, 1};
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

}  // namespace
}  // namespace gnnd::test
