// SPDX-License-Identifier: MIT
// Builds leave other GPUs, the current device and the driver's room alone. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "gnnd/builder.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/runtime/driver.h"
#include "gnnd/error.h"
#include "gnnd/search_links.h"
#include "tests/gpu.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::gpu_params;
using test::random_vectors;
using test::same_graph;
using test::Vectors;

int current_device() {
    int device = -1;
    return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

/// A context takes hundreds of megabytes and is made by nearly every call of the runtime: in a process of its own.
TEST(CudaContextDeathTest, AskingWhereAPointerLiesMakesNone) {
    SKIP_WITHOUT_GPU();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const int here = 0;
            const bool on_host = cuda::device_of(&here) == cuda::kHost;
            std::_Exit(on_host && !cuda::has_context(0) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST(CudaContextDeathTest, AnotherDevicesBuildMakesNoneOnTheFirst) {
    if (cuda::device_count() < 2) GTEST_SKIP() << "one GPU only";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            BuildParams params = gpu_params(10);
            params.device.index = 1;
            LinkParams links;
            links.device = params.device;
            std::vector<std::int32_t> linked(3000 * links.degree);
            for (const std::int64_t n : {500, 3000}) {  // all pairs, and GNND
                const Vectors vectors = random_vectors(n, 20, DType::f32);
                const KnnGraph graph = build(vectors, params).graph;
                search_links(vectors, graph, links, linked.data());
            }
            std::_Exit(cuda::has_context(0) ? 1 : !cuda::has_context(1) ? 2 : current_device() != 0 ? 3 : 0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(CudaDevices, TheCurrentOneStaysCurrent) {
    if (cuda::device_count() < 2) GTEST_SKIP() << "one GPU only";
    const int before = current_device();
    {
        const cuda::UseDevice other(1 - before);
        EXPECT_EQ(current_device(), 1 - before);
        const cuda::UseDevice same(1 - before), back(before);
        EXPECT_EQ(current_device(), before);
        const test::OnDevice<int> here(1);
        EXPECT_EQ(cuda::device_of(here), before);
    }
    EXPECT_EQ(current_device(), before);
    EXPECT_THROW(cuda::UseDevice none(4095), DeviceError);
    EXPECT_EQ(current_device(), before);
}

TEST(CudaDevices, ACallbackMayMakeAnotherOneCurrent) {
    if (cuda::device_count() < 2) GTEST_SKIP() << "one GPU only";
    const Vectors vectors = random_vectors(5000, 20, DType::f32);
    BuildParams params = gpu_params(10);
    params.device.index = 1;
    params.deterministic = true;
    params.recall = 0;  // iterations, after which progress is told
    const KnnGraph wanted = build(vectors, params).graph;
    const int before = current_device();
    int calls = 0;
    Callbacks callbacks;
    callbacks.progress = [&](const IterationStats&) { calls += cudaSetDevice(0) == cudaSuccess; };
    callbacks.interrupt = [&] { return cudaSetDevice(0) != cudaSuccess; };
    EXPECT_TRUE(same_graph(build(vectors, params, callbacks).graph, wanted));
    EXPECT_GT(calls, 0);
    EXPECT_EQ(current_device(), before);
}

/// The driver takes memory of its own after a build has planned.
TEST(CudaMemory, PlansLeaveRoomForTheDriver) {
    SKIP_WITHOUT_GPU();
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetMemPool(&pool, 0), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    std::size_t free = 0, total = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    HeapResources heap;
    EXPECT_LE(heap.free_device_memory() + (std::size_t(128) << 20), free);
    EXPECT_GE(heap.free_device_memory() + (std::size_t(512) << 20), free);
}

}  // namespace
}  // namespace gnnd
