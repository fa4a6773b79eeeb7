// SPDX-License-Identifier: MIT
// Device memory: vectors and graphs that lie there, builds side by side, and what builds take and keep of it. Without a
// GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/own_stream.h"

namespace gnnd {
namespace {

using test::expect_valid_graph;
using test::gpu_params;
using test::OnDevice;
using test::OwnStream;
using test::random_vectors;
using test::Vectors;

/// \param gap    bytes between the rows on the device, and in front of the first
/// \param index  which device
void build_on_device(const Vectors& vectors, Resources* resources = nullptr, std::int64_t gap = 0, int index = 0) {
    const VectorView host = vectors;
    const int k = 20;
    const std::int64_t stride = host.row_bytes() + gap;
    ASSERT_EQ(cudaSetDevice(index), cudaSuccess);
    const OnDevice<std::byte> input(gap + host.n * stride);
    ASSERT_EQ(cudaMemcpy2D(input.get() + gap, stride, host.data, host.row_bytes(), host.row_bytes(), host.n,
                           cudaMemcpyHostToDevice),
              cudaSuccess);
    const OnDevice<std::int32_t> ids(host.n * k);
    const OnDevice<float> distances(host.n * k);
    KnnGraph graph(host.n, k, Metric::L2);
    BuildParams params = gpu_params(k);
    params.device.index = index;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);  // the caller's current device need not be the build's
    build_into({input.get() + gap, host.n, host.d, host.dtype, gap == 0 ? 0 : stride}, params, ids.get(),
               distances.get(), {}, resources);
    ASSERT_EQ(cudaMemcpy(graph.ids(), ids.get(), host.n * k * 4, cudaMemcpyDeviceToHost), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(graph.distances(), distances.get(), host.n * k * 4, cudaMemcpyDeviceToHost), cudaSuccess);
    expect_valid_graph(graph, vectors);
}

TEST(Cuda, DeviceMemoryInAndOut) {
    SKIP_WITHOUT_GPU();
    for (DType dtype : {DType::f32, DType::u8})
        for (std::int64_t d : {96, 100}) build_on_device(random_vectors(3000, d, dtype));
    build_on_device(random_vectors(500, 8, DType::f32));
}

/// A build leaves out what a high recall asks for where the memory is short, before it fails.
TEST(CudaMemory, AHighRecallMakesDoWithLess) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 32, DType::f32);
    BuildParams params = gpu_params(32);
    params.recall = 0.999f;
    params.deterministic = true;  // others compare all pairs of so few, which takes less
    std::set<int> samples;
    std::int64_t bytes = std::int64_t(256) << 20;
    try {
        for (;; bytes -= bytes / 16) {
            params.device_memory = bytes;
            const BuildResult result = build(vectors, params);
            expect_valid_graph(result.graph, vectors);
            samples.insert(result.stats.choices.samples);
        }
    } catch (const OutOfDeviceMemory&) {  // no build does with less
    }
    EXPECT_EQ(samples, (std::set<int>{32, 64}));
}

TEST(Cuda, RowsApartInDeviceMemory) {
    SKIP_WITHOUT_GPU();
    for (std::int64_t d : {1, 31, 96, 128}) {
        for (std::int64_t gap : {1, 3, 16, 32}) build_on_device(random_vectors(2000, d, DType::u8), nullptr, gap);
        for (std::int64_t gap : {4, 12}) build_on_device(random_vectors(2000, d, DType::f32), nullptr, gap);
        build_on_device(random_vectors(2000, d, DType::f16), nullptr, 2);
    }
}

TEST(Cuda, TwoBuildsAtOnceOnTwoDevices) {
    SKIP_WITHOUT_GPU();
    if (cuda::device_count() < 2) GTEST_SKIP() << "one GPU only";
    const Vectors vectors = random_vectors(20000, 96, DType::u8);
    std::thread other([&] { build_on_device(vectors, nullptr, 0, 1); });
    build_on_device(vectors, nullptr, 0, 0);
    other.join();
    BuildParams params = gpu_params(10);
    params.device.index = 1;
    const BuildResult result = build(vectors, params);
    expect_valid_graph(result.graph, vectors);
    EXPECT_EQ(result.stats.device.name(), "cuda:1");
    // Vectors on one device, the build on the other.
    const OnDevice<std::byte> input(20000 * 96, static_cast<const std::byte*>(vectors.view().data));
    EXPECT_THROW(build({input.get(), 20000, 96, DType::u8, 0}, params), InvalidArgument);
}

TEST(Cuda, ArraysInDifferentMemoriesAreRefused) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 20, DType::f32);
    const OnDevice<std::int32_t> ids(3000 * 10);
    std::vector<float> distances(3000 * 10);
    EXPECT_THROW(build_into(vectors, gpu_params(10), ids.get(), distances.data()), InvalidArgument);
    BuildParams params = gpu_params(10);
    params.device = {Device::Kind::cpu, 0};
    EXPECT_THROW(build_into(vectors, params, ids.get(), distances.data()), InvalidArgument);
}

TEST(Cuda, TwoBuildsAtOnceOnTwoStreams) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 96, DType::u8);
    OwnStream resources[2];
    std::thread other([&] { build_on_device(vectors, &resources[1]); });
    build_on_device(vectors, &resources[0]);
    other.join();
    EXPECT_GT(resources[0].allocations, 0);
    EXPECT_GT(resources[1].allocations, 0);
}

TEST(Cuda, HostBuildsSideBySide) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 96, DType::f32);
    std::thread other([&] { expect_valid_graph(build(vectors, gpu_params(10)).graph, vectors); });
    expect_valid_graph(build(vectors, gpu_params(10)).graph, vectors);
    other.join();
}

TEST(Cuda, MemoryPlanIsKept) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 128, DType::u8);
    for (const auto& [samples, recall] : {std::pair{16, 0.0f}, {32, 0.0f}, {32, 0.9f}}) {
        BuildParams params = gpu_params(64);
        params.samples = samples;
        params.recall = recall;
        // Of the objects that are measured, and of those that all pairs are looked at with first.
        const double measured = recall == 0 ? 0 : (4096 + 2048) * (1024 * 8 + 64 * 8 + 128 + 40) + 2 * 20000 * 8;
        const MemoryPlan plan = plan_memory(vectors, params);
        EXPECT_GE(plan.vectors, std::size_t(20000 * 128));
        EXPECT_GE(plan.graph, std::size_t(20000 * 64 * 8));
        EXPECT_LE(double(plan.graph + plan.work), (samples == 16 ? 2.0 : 2.75) * 20000 * 64 * 8 + measured + (1 << 20));
        HeapResources heap;
        CountedResources counted(heap);
        const BuildResult result = build(vectors, params, {}, &counted);
        EXPECT_LE(counted.peak(), plan.total());
        EXPECT_EQ(counted.held(), 0u);
    }
}

TEST(Cuda, MemoryPlanSaysWhatTheBuildWouldChoose) {
    SKIP_WITHOUT_GPU();
    const VectorView vectors{nullptr, 200000, 128, DType::u8, 0}, few{nullptr, 20000, 128, DType::u8, 0};
    BuildParams params = gpu_params(64);
    EXPECT_EQ(plan_memory(few, params).why, "all pairs, which cost less with so few objects");
    const MemoryPlan plan = plan_memory(vectors, params);
    EXPECT_EQ(plan.why, "the build measures after its first iteration and takes all pairs if that is cheaper");
    EXPECT_GT(plan.predicted.all_pairs, 0);
    EXPECT_GT(plan.predicted.iterations, 0);
    params = gpu_params(64, Metric::L1);
    EXPECT_EQ(plan_memory(vectors, params).predicted.all_pairs, 0) << "no rates were measured";
    params.recall = 1;
    EXPECT_EQ(plan_memory(vectors, params).why, "all pairs, as was asked for");
}

/// All pairs are compared on the host there.
TEST(Cuda, MemoryPlanOfASmallSetIsNothing) {
    SKIP_WITHOUT_GPU();
    const MemoryPlan plan = plan_memory(random_vectors(500, 20, DType::f32), gpu_params(10));
    EXPECT_TRUE(plan.choices.exhaustive);
    EXPECT_EQ(plan.total(), 0u);
    EXPECT_GT(plan.free, 0u);
}

TEST(Cuda, MemoryCapIsKept) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 200000;  // so many that all pairs are not compared at once
    const Vectors vectors = random_vectors(kN, 16, DType::u8);
    BuildParams params = gpu_params(64);
    const std::size_t wanted = plan_memory(vectors, params).total();
    params.device_memory = std::int64_t(wanted - kN * 8 * 20);
    HeapResources heap;
    CountedResources counted(heap);
    const BuildResult result = build(vectors, params, {}, &counted);
    expect_valid_graph(result.graph, vectors);
    EXPECT_LE(counted.peak(), std::size_t(params.device_memory));
    // Also with a graph to start from, which takes room as well.
    params.k = 10;
    params.list_size = 64;
    CountedResources again(heap);
    const BuildResult refined = refine(vectors, result.graph, params, {}, &again);
    expect_valid_graph(refined.graph, vectors);
    EXPECT_LE(again.peak(), std::size_t(params.device_memory));
    EXPECT_GE(again.peak(), std::size_t(refined.stats.peak_work_bytes));
}

/// Resources that say how much they have are believed.
TEST(Cuda, ResourcesSayWhatIsFree) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 20, DType::f32);
    struct Small : OwnStream {
        std::size_t free_device_memory() override { return free; }
        std::size_t free = 0;
    } resources;
    expect_valid_graph(build(vectors, gpu_params(32), {}, &resources).graph, vectors);  // 0: unknown
    resources.free = 12345;
    try {
        build(vectors, gpu_params(32), {}, &resources);
        FAIL();
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_NE(std::string(error.what()).find("12345 are free"), std::string::npos) << error.what();
    }
}

TEST(Cuda, DeterministicBuildsDoNotDependOnFreeMemory) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 40, DType::u8);
    BuildParams params = gpu_params(64);
    params.deterministic = true;
    struct Little : OwnStream {
        std::size_t free_device_memory() override { return free; }
        std::size_t free = 0;
    } resources;
    const KnnGraph graph = build(vectors, params, {}, &resources).graph;
    const std::size_t wanted = plan_memory(vectors, params).total();
    resources.free = wanted;
    const KnnGraph again = build(vectors, params, {}, &resources).graph;
    EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 20000 * 64, again.ids()));
    resources.free = wanted - 20000 * 8;  // fewer places would fit
    EXPECT_THROW(build(vectors, params, {}, &resources), OutOfDeviceMemory);
    params.deterministic = false;
    expect_valid_graph(build(vectors, params, {}, &resources).graph, vectors);
}

TEST(Cuda, TooLittleMemoryIsAnErrorThatSaysHowMuch) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 20, DType::f32);
    BuildParams params = gpu_params(32);
    params.device_memory = 1000;
    try {
        build(vectors, params);
        FAIL();
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_NE(std::string(error.what()).find("1000"), std::string::npos) << error.what();
    }
    params.device_memory = 0;
    expect_valid_graph(build(vectors, params).graph, vectors);
}

/// Device memory that is there when planned and gone when asked for.
TEST(Cuda, MemoryThatRunsOutMidwayLeavesTheContextUsable) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 20, DType::f32);
    struct Empty : OwnStream {
        void* allocate_device(std::size_t, Stream stream) override {
            return OwnStream::allocate_device(std::size_t(1) << 50, stream);
        }
    } empty;
    EXPECT_THROW(build(vectors, gpu_params(10), {}, &empty), OutOfDeviceMemory);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    expect_valid_graph(build(vectors, gpu_params(10)).graph, vectors);
}

}  // namespace
}  // namespace gnnd
