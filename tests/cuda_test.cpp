// build() on a GPU: the invariants over all kinds of input, recall against the CPU backend, device memory in and out,
// and every kind of refusal. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/gpu.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::expect_valid_graph;
using test::gpu_params;
using test::OnDevice;
using test::random_vectors;
using test::Vectors;
using test::vectors_for;

struct Case {
    Metric metric;
    DType dtype;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << name_of(c.metric) << '_' << name_of(c.dtype);
    }
};

/// How candidates reach the lists.
struct Variant {
    const char* name;
    Update update;
    Locks locks;
    bool deterministic;
    friend std::ostream& operator<<(std::ostream& out, const Variant& v) { return out << v.name; }
    BuildParams apply(BuildParams params) const {
        params.update = update;
        params.locks = locks;
        params.deterministic = deterministic;
        return params;
    }
};

constexpr Variant kAuto{"auto", Update::automatic, Locks::segment, false};
constexpr Variant kVariants[] = {
    kAuto,
    {"segment_locks", Update::selective, Locks::segment, false},
    {"list_locks", Update::selective, Locks::list, false},
    {"all_pairs", Update::all, Locks::segment, false},
};
constexpr Variant kDeterministic[] = {
    {"auto_deterministic", Update::automatic, Locks::segment, true},
    {"list_locks_deterministic", Update::selective, Locks::list, true},
    {"all_pairs_deterministic", Update::all, Locks::segment, true},
};

std::vector<Variant> all_variants() {
    std::vector<Variant> variants(std::begin(kVariants), std::end(kVariants));
    variants.insert(variants.end(), std::begin(kDeterministic), std::end(kDeterministic));
    return variants;
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (Metric metric :
         {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1, Metric::Linf, Metric::ChiSquare})
        for (DType dtype : {DType::f32, DType::f16, DType::u8, DType::i8}) cases.push_back({metric, dtype});
    return cases;
}

class CudaInvariantsTest : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
    void run(std::int64_t n, std::int64_t d, int k, Init init = Init::projection, int samples = 0,
             const Variant& variant = kAuto) {
        SCOPED_TRACE(testing::Message() << "n " << n << ", d " << d << ", k " << k << ", p " << samples << ", "
                                        << variant);
        const Case c = GetParam();
        const Vectors vectors = vectors_for(c.metric, n, d, c.dtype);
        BuildParams params = variant.apply(gpu_params(k, c.metric));
        params.iterations = 3;
        params.init = init;
        params.samples = samples;
        const BuildResult result = build(vectors, params);
        expect_valid_graph(result.graph, vectors);
        EXPECT_EQ(result.stats.device.name(), "cuda:0");
    }
};

TEST_P(CudaInvariantsTest, HoldWhereAllPairsAreCompared) {
    for (std::int64_t n : {2, 33, 1000}) run(n, 31, 10);
}
TEST_P(CudaInvariantsTest, HoldForAnyDimension) {
    for (std::int64_t d : {1, 3, 31, 64, 127, 128, 129, 257, 960}) run(2100, d, 10);
}
TEST_P(CudaInvariantsTest, HoldForAnyK) {
    for (int k : {1, 10, 32, 33, 64, 100, 1024}) run(2100, 31, k);
}
TEST_P(CudaInvariantsTest, HoldForAnySamplesAndInit) {
    for (int samples : {1, 5, 16, 17, 32, 40, 64}) run(2100, 31, 64, Init::random, samples);
}
TEST_P(CudaInvariantsTest, HoldForAnyUpdate) {
    for (const Variant& variant : all_variants()) {
        run(1500, 31, 64, Init::random, 16, variant);
        run(1500, 129, 100, Init::random, 32, variant);
        run(1500, 257, 70, Init::projection, 64, variant);
        run(1500, 20, 10, Init::projection, 0, variant);
    }
}
TEST_P(CudaInvariantsTest, HoldForManyObjects) {
    run(100'003, 3, 10);
}

INSTANTIATE_TEST_SUITE_P(All, CudaInvariantsTest, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

TEST(Cuda, LongRows) {
    SKIP_WITHOUT_GPU();
    for (DType dtype : {DType::f32, DType::u8, DType::i8}) {
        const Vectors vectors = random_vectors(1200, 16384, dtype);
        expect_valid_graph(build(vectors, gpu_params(10)).graph, vectors);
    }
}

TEST(Cuda, RecallIsThatOfTheCpu) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile file(GNND_TEST_DATA "/photosift20k.u8bin");
    std::vector<std::int32_t> objects;
    for (int i = 0; i < 20000; i += 20) objects.push_back(i);
    std::vector<float> floats(20000 * 128);
    copy_as_f32(file.view(), 0, 20000, floats.data());
    const VectorView as_floats{floats.data(), 20000, 128, DType::f32, 0};
    for (Metric metric :
         {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1, Metric::Linf, Metric::ChiSquare}) {
        const KnnGraph truth = exact_neighbors(file.view(), objects.data(), std::int64_t(objects.size()), 10, metric);
        for (int k : {10, 32, 64}) {
            BuildParams params = gpu_params(k, metric);
            params.device = {Device::Kind::cpu, 0};
            const double cpu = test::recall_at(build(file.view(), params).graph, truth, objects, 10);
            for (Init init : {Init::projection, Init::random})
                for (const VectorView& view : {file.view(), as_floats}) {
                    params = gpu_params(k, metric);
                    params.init = init;
                    const BuildResult result = build(view, params);
                    EXPECT_GE(test::recall_at(result.graph, truth, objects, 10, 1e-6), cpu - 0.005)
                        << name_of(metric) << ' ' << k << ' ' << name_of(init) << ' ' << name_of(view.dtype);
                    EXPECT_EQ(result.stats.stop, StopReason::converged);
                }
        }
    }
}

class CudaVariantTest : public testing::TestWithParam<Variant> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};
INSTANTIATE_TEST_SUITE_P(All, CudaVariantTest, testing::ValuesIn(all_variants()), testing::PrintToStringParamName());

TEST_P(CudaVariantTest, RecallIsThatOfTheCpu) {
    const io::VectorFile file(GNND_TEST_DATA "/photosift20k.u8bin");
    std::vector<std::int32_t> objects;
    for (int i = 0; i < 20000; i += 20) objects.push_back(i);
    for (Metric metric : {Metric::L2, Metric::Cosine, Metric::L1}) {
        const KnnGraph truth = exact_neighbors(file.view(), objects.data(), std::int64_t(objects.size()), 10, metric);
        for (int k : {32, 64})
            for (Init init : {Init::projection, Init::random}) {
                // The same update there, as far as there is one.
                BuildParams params = gpu_params(k, metric);
                params.init = init;
                params.update = GetParam().deterministic ? Update::selective : GetParam().update;
                params.samples = 32;
                params.device = {Device::Kind::cpu, 0};
                const double cpu = test::recall_at(build(file.view(), params).graph, truth, objects, 10);
                params.device = {Device::Kind::cuda, 0};
                const BuildResult result = build(file.view(), GetParam().apply(params));
                EXPECT_GE(test::recall_at(result.graph, truth, objects, 10, 1e-6), cpu - 0.005)
                    << name_of(metric) << ' ' << k << ' ' << name_of(init);
                EXPECT_EQ(result.stats.stop, StopReason::converged);
            }
    }
}

/// k of 1024: 32 segments, lists longer than a warp; and the longest merges of every pair.
TEST_P(CudaVariantTest, LongLists) {
    for (const auto& [metric, dtype] : {std::pair{Metric::L2, DType::u8}, std::pair{Metric::Linf, DType::f32}}) {
        const Vectors vectors = vectors_for(metric, 2100, 40, dtype);
        BuildParams params = GetParam().apply(gpu_params(1024, metric));
        params.samples = 64;
        params.iterations = 2;
        expect_valid_graph(build(vectors, params).graph, vectors);
    }
}

TEST_P(CudaVariantTest, SameSeedSameGraph) {
    if (!GetParam().deterministic) GTEST_SKIP() << "not promised";
    const auto same = [](const KnnGraph& a, const KnnGraph& b) {
        const std::int64_t size = a.n() * a.k();
        return std::equal(a.ids(), a.ids() + size, b.ids()) &&
               std::equal(a.distances(), a.distances() + size, b.distances());
    };
    for (const auto& [metric, dtype] :
         {std::pair{Metric::L2, DType::u8}, std::pair{Metric::L2, DType::f32}, std::pair{Metric::Cosine, DType::f16},
          std::pair{Metric::InnerProduct, DType::i8}, std::pair{Metric::ChiSquare, DType::f32}})
        for (Init init : {Init::projection, Init::random}) {
            const Vectors vectors = vectors_for(metric, 20000, 40, dtype);
            BuildParams params = GetParam().apply(gpu_params(40, metric));
            params.init = init;
            const KnnGraph first = build(vectors, params).graph;
            for (int i = 0; i < 3; ++i)
                EXPECT_TRUE(same(build(vectors, params).graph, first)) << name_of(metric) << ' ' << name_of(init);
            params.seed += 1;
            EXPECT_FALSE(same(build(vectors, params).graph, first)) << name_of(metric) << ' ' << name_of(init);
        }
    // From a graph: its entries come back as candidates.
    for (const auto& [metric, dtype] : {std::pair{Metric::L2, DType::u8}, std::pair{Metric::L1, DType::f32}}) {
        const Vectors vectors = vectors_for(metric, 20000, 200, dtype);
        BuildParams params = GetParam().apply(gpu_params(32, metric));
        params.iterations = 1;
        const KnnGraph start = build(vectors, params).graph;
        params.iterations = 4;
        const KnnGraph first = refine(vectors, start, params).graph;
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(refine(vectors, start, params).graph, first)) << name_of(metric);
    }
    // Few distinct distances: ties everywhere.
    Vectors few = random_vectors(5000, 3, DType::u8);
    for (std::int64_t i = 0; i < 5000; ++i)
        for (int c = 0; c < 3; ++c) few.set(i, c, float((i * (c + 3)) % 7));
    const BuildParams params = GetParam().apply(gpu_params(40));
    const KnnGraph first = build(few, params).graph;
    EXPECT_TRUE(same(build(few, params).graph, first));
}

/// Every kernel once, small enough for compute-sanitizer's slowest tool.
TEST_P(CudaVariantTest, SmallBuildOfEachKind) {
    for (const auto& [metric, dtype] :
         {std::pair{Metric::L2, DType::u8}, std::pair{Metric::L2, DType::f32}, std::pair{Metric::Linf, DType::f32}})
        for (int samples : {16, 32, 64}) {
            const Vectors vectors = vectors_for(metric, 1030, samples == 32 ? 150 : 20, dtype);
            BuildParams params = GetParam().apply(gpu_params(20, metric));
            params.list_size = 64;
            params.samples = samples;
            params.iterations = 2;
            params.trees = 2;
            expect_valid_graph(build(vectors, params).graph, vectors);
        }
}

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

/// Resources with a stream of the caller's, and device memory that runs out.
class OwnStream : public Resources {
  public:
    OwnStream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
    ~OwnStream() override { cudaStreamDestroy(stream_); }
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    Stream stream() override { return stream_; }
    void* allocate_device(std::size_t bytes, Stream stream) override {
        EXPECT_EQ(stream, stream_);
        ++allocations;
        return Resources::allocate_device(bytes, stream);
    }
    int allocations = 0;

  private:
    HeapResources heap_;
    cudaStream_t stream_ = nullptr;
};

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

TEST(Cuda, RefineStartsFromTheGraph) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 20, DType::f32);
    BuildParams params = gpu_params(10);
    const BuildResult built = build(vectors, params);
    const BuildResult refined = refine(vectors, built.graph, params);
    expect_valid_graph(refined.graph, vectors);
    EXPECT_NEAR(refined.stats.iterations.front().phi / built.stats.iterations.back().phi, 1, 1e-3);
    EXPECT_LE(refined.stats.iterations.back().phi, built.stats.iterations.back().phi * (1 + 1e-6));
    params.k = 50;
    expect_valid_graph(refine(vectors, built.graph, params).graph, vectors);
}

TEST(Cuda, RepeatedBuildsKeepNothing) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(5000, 64, DType::f32);
    build(vectors, gpu_params(32));
    std::size_t before = 0, after = 0, total = 0;
    ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
    for (int i = 0; i < 5; ++i) build(vectors, gpu_params(32));
    ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
    EXPECT_GE(after + (4 << 20), before);
}

TEST(Cuda, MemoryPlanIsKept) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 128, DType::u8);
    for (int samples : {16, 32}) {
        BuildParams params = gpu_params(64);
        params.samples = samples;
        const MemoryPlan plan = plan_memory(vectors, params);
        EXPECT_GE(plan.vectors, std::size_t(20000 * 128));
        EXPECT_GE(plan.graph, std::size_t(20000 * 64 * 8));
        EXPECT_LE(double(plan.graph + plan.work), (samples == 16 ? 2.0 : 2.75) * 20000 * 64 * 8 + (1 << 20));
        HeapResources heap;
        CountedResources counted(heap);
        const BuildResult result = build(vectors, params, {}, &counted);
        EXPECT_LE(counted.peak(), plan.total());
        EXPECT_EQ(counted.held(), 0u);
    }
}

TEST(Cuda, MemoryCapIsKept) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 128, DType::u8);
    BuildParams params = gpu_params(64);
    const std::size_t wanted = plan_memory(vectors, params).total();
    params.device_memory = std::int64_t(wanted - 20000 * 8 * 20);
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

/// The pool behind the default keeps freed memory here: it is free for the next build.
TEST(Cuda, WhatThePoolKeepsIsFree) {
    SKIP_WITHOUT_GPU();
    cudaMemPool_t pool;
    ASSERT_EQ(cudaDeviceGetMemPool(&pool, 0), cudaSuccess);
    std::uint64_t keep = ~std::uint64_t(0), none = 0;
    HeapResources heap;
    const std::size_t before = heap.free_device_memory();
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), cudaSuccess);
    void* block = nullptr;
    ASSERT_EQ(cudaMallocAsync(&block, std::size_t(1) << 30, nullptr), cudaSuccess);
    EXPECT_LE(heap.free_device_memory() + (std::size_t(1) << 29), before);
    ASSERT_EQ(cudaFreeAsync(block, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::size_t free = 0, total = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_LE(free + (std::size_t(1) << 29), before);
    EXPECT_GE(heap.free_device_memory() + (std::size_t(1) << 28), before);
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &none), cudaSuccess);
    ASSERT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
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

/// The same numbers in another type.
Vectors converted(const VectorView& from, DType dtype) {
    Vectors to(from.n, from.d, dtype);
    std::vector<float> row(from.d);
    for (std::int64_t i = 0; i < from.n; ++i) {
        copy_as_f32(from, i, 1, row.data());
        for (std::int64_t c = 0; c < from.d; ++c) to.set(i, c, row[c]);
    }
    return to;
}

TEST(Cuda, FloatsThatAreSmallIntegersAreTreatedAsSuch) {
    SKIP_WITHOUT_GPU();
    for (const DType dtype : {DType::u8, DType::i8})
        for (const std::int64_t d : {3, 128, 200})
            for (const Metric metric : {Metric::L2, Metric::InnerProduct}) {
                SCOPED_TRACE(std::string(name_of(dtype)) + " d " + std::to_string(d));
                const Vectors integers = random_vectors(3000, d, dtype);
                BuildParams params = gpu_params(20, metric);
                params.deterministic = true;
                const KnnGraph expected = build(integers, params).graph;
                for (const DType as : {DType::f32, DType::f16}) {
                    const KnnGraph graph = build(converted(integers, as), params).graph;
                    EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 3000 * 20, expected.ids()));
                    EXPECT_TRUE(std::equal(graph.distances(), graph.distances() + 3000 * 20, expected.distances()));
                }
            }
}

TEST(Cuda, OneOddComponentMakesFloatsOfThem) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = converted(random_vectors(3000, 40, DType::u8), DType::f32);
    for (const float odd : {0.5f, -1.0f, 256.0f, 1e10f, -0.0f}) {
        SCOPED_TRACE(odd);
        vectors.set(2999, 39, odd);
        expect_valid_graph(build(vectors, gpu_params(20)).graph, vectors);
    }
    vectors.set(2999, 39, NAN);
    EXPECT_THROW(build(vectors, gpu_params(20)), InvalidArgument);
    vectors.set(2999, 39, INFINITY);
    EXPECT_THROW(build(vectors, gpu_params(20)), InvalidArgument);
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

TEST(Cuda, BadRowsAreNamed) {
    SKIP_WITHOUT_GPU();
    const auto message = [](const Vectors& vectors, Metric metric) {
        try {
            build(vectors, gpu_params(10, metric));
        } catch (const InvalidArgument& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    Vectors vectors = random_vectors(3000, 20, DType::f32);
    vectors.set(2500, 3, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(message(vectors, Metric::L2), "vector 2500 holds NaN");
    vectors.set(1200, 19, std::numeric_limits<float>::infinity());
    EXPECT_EQ(message(vectors, Metric::L2), "vector 1200 holds an infinite component");
    Vectors zero = random_vectors(3000, 20, DType::u8);
    for (int c = 0; c < 20; ++c) zero.set(77, c, 0);
    EXPECT_NE(message(zero, Metric::Cosine).find("vector 77 is zero"), std::string::npos);
    Vectors negative = random_vectors(3000, 20, DType::f32, true);
    negative.set(5, 5, -1);
    EXPECT_NE(message(negative, Metric::ChiSquare).find("vector 5 holds a negative"), std::string::npos);
}

/// Norms whose sum over the sample of rows is past float's range.
TEST(Cuda, CosineOfLongVectors) {
    SKIP_WITHOUT_GPU();
    const Vectors direction = random_vectors(3000, 32, DType::f32);
    const float* x = static_cast<const float*>(direction.view().data);
    Vectors vectors(3000, 32, DType::f32);
    for (std::int64_t i = 0; i < 3000; ++i)
        for (std::int64_t c = 0; c < 32; ++c) vectors.set(i, c, x[i * 32 + c] * 5e17f);
    const BuildResult result = build(vectors, gpu_params(10, Metric::Cosine));
    std::vector<std::int32_t> objects(300);
    for (int i = 0; i < 300; ++i) objects[i] = i * 10;
    const KnnGraph truth = exact_neighbors(vectors, objects.data(), 300, 10, Metric::Cosine);
    EXPECT_GE(test::recall_at(result.graph, truth, objects, 10, 1e-5), 0.98);
}

/// Numbers that go with what objects are: even ones here, odd ones there.
TEST(Cuda, SegmentsDoNotFollowTheNumbers) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = random_vectors(5000, 20, DType::f32);
    for (std::int64_t i = 0; i < 5000; i += 2) vectors.set(i, 0, 100);
    std::vector<std::int32_t> objects(300);
    for (int i = 0; i < 300; ++i) objects[i] = i * 16 + i % 2;
    const KnnGraph truth = exact_neighbors(vectors, objects.data(), 300, 64, Metric::L2);
    BuildParams params = gpu_params(64);
    params.update = Update::selective;
    EXPECT_GE(test::recall_at(build(vectors, params).graph, truth, objects, 64, 1e-6), 0.9);
}

TEST(Cuda, InterruptEndsTheBuild) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(5000, 64, DType::f32);
    int asked = 0;
    EXPECT_THROW(build(vectors, gpu_params(10), {nullptr, [&] { return ++asked > 2; }}), Interrupted);
    EXPECT_THROW(
        build(vectors, gpu_params(10), {[](const IterationStats&) { throw std::runtime_error("stop"); }, nullptr}),
        std::runtime_error);
    expect_valid_graph(build(vectors, gpu_params(10)).graph, vectors);
}

TEST(Cuda, StatsTellEveryIteration) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 64, DType::f32);
    std::vector<IterationStats> seen;
    const BuildResult result =
        build(vectors, gpu_params(32), {[&](const IterationStats& stats) { seen.push_back(stats); }, nullptr});
    ASSERT_EQ(seen.size(), result.stats.iterations.size());
    ASSERT_GE(seen.size(), 3u);
    double phi = 0;
    for (std::int64_t i = 0; i < 20000 * 32; ++i) phi += result.graph.distances()[i];
    EXPECT_NEAR(seen.back().phi / phi, 1, 1e-3);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].iteration, int(i));
        EXPECT_GT(seen[i].seconds, 0);
        if (i == 0) continue;
        EXPECT_LE(seen[i].accepted, seen[i].offered);
        EXPECT_GT(seen[i].distances, 0);
        EXPECT_GT(seen[i].accepted, 0);
    }
    EXPECT_LT(seen.back().changed, 0.001 * 20000 * 32);
}

TEST(Cuda, HardInput) {
    SKIP_WITHOUT_GPU();
    Vectors equal(2000, 16, DType::f32), few(2000, 16, DType::u8);
    for (int i = 0; i < 2000; ++i)
        for (int c = 0; c < 16; ++c) {
            equal.set(i, c, 1);
            few.set(i, c, float(i % 5));
        }
    expect_valid_graph(build(equal, gpu_params(32)).graph, equal);
    expect_valid_graph(build(few, gpu_params(32)).graph, few);
    Vectors far = random_vectors(2000, 16, DType::f32);
    for (int i = 0; i < 2000; ++i)
        for (int c = 0; c < 16; ++c) far.set(i, c, 1e6f + float((i * 31 + c * 17) % 997));
    expect_valid_graph(build(far, gpu_params(32)).graph, far);
}

TEST(CudaDevices, OneThatIsNotThereIsAnError) {
    BuildParams params = gpu_params(10);
    params.device.index = 4000;
    EXPECT_THROW(build(random_vectors(3000, 20, DType::f32), params), Unavailable);
}

TEST(CudaDevices, AutomaticFallsBackAndSaysWhy) {
    BuildParams params = gpu_params(10);
    params.device.kind = Device::Kind::automatic;
    const BuildStats stats = build(random_vectors(3000, 20, DType::f32), params).stats;
    EXPECT_EQ(stats.device_reason.empty(), cuda::device_count() > 0);
    EXPECT_EQ(stats.device.kind == Device::Kind::cuda, cuda::device_count() > 0);
}

}  // namespace
}  // namespace gnnd
