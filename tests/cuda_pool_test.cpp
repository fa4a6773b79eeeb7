// SPDX-License-Identifier: MIT
// Builds keep memory of a GPU between them. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gnnd/builder.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/error.h"
#include "gnnd/resources.h"
#include "tests/gpu.h"
#include "tests/invariants.h"

namespace gnnd::test {
namespace {

std::size_t free_memory() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
}

TEST(Cuda, RepeatedBuildsKeepNoMore) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(5000, 64, DType::f32);
    build(vectors, gpu_params(32));
    const std::size_t before = free_memory();
    for (int i = 0; i < 5; ++i) build(vectors, gpu_params(32));
    EXPECT_GE(free_memory() + (4 << 20), before);
}

/// Memory that a build takes stays for the next one, and comes back when it is asked for.
TEST(Cuda, MemoryStaysUntilItIsAskedFor) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(50000, 128, DType::u8);
    const std::size_t work = plan_memory(vectors, gpu_params(64)).total();
    keep_device_memory(0);
    build(vectors, gpu_params(64));
    keep_device_memory(0);
    const std::size_t before = free_memory(), slack = 8 << 20;
    build(vectors, gpu_params(64));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_GE(free_memory() + slack, before) << "nothing was to be kept";
    keep_device_memory(std::size_t(1) << 30);
    build(vectors, gpu_params(64));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_LE(free_memory() + work / 2, before) << "it was to be kept";
    keep_device_memory(std::size_t(3) << 29);  // as it is by default
    EXPECT_GE(free_memory() + slack, before);
}

/// As on virtual GPUs without pools: the same graph, and nothing is asked of the pool that is there.
TEST(Cuda, BuildsWithoutAPool) {
    SKIP_WITHOUT_GPU();
    struct WithoutPools {
        WithoutPools() { cuda::let_pools_serve(false); }
        ~WithoutPools() { cuda::let_pools_serve(true); }
    };
    const Vectors vectors = random_vectors(5000, 64, DType::f32);
    BuildParams params = gpu_params(16);
    params.deterministic = true;
    const KnnGraph pooled = build(vectors, params).graph;
    keep_device_memory(0);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cudaMemPool_t pool;
    ASSERT_EQ(cudaDeviceGetMemPool(&pool, 0), cudaSuccess);
    std::uint64_t used = 0, most = 0;
    ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most), cudaSuccess);  // from now on
    {
        const WithoutPools without;
        const KnnGraph graph = build(vectors, params).graph;
        EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + graph.n() * graph.k(), pooled.ids()));
        const std::size_t before = free_memory();
        build(vectors, params);
        EXPECT_GE(free_memory() + (4 << 20), before) << "what was taken has gone back";
        HeapResources heap;
        EXPECT_THROW(heap.allocate_device(std::size_t(1) << 50, nullptr), OutOfDeviceMemory);
    }
    ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most), cudaSuccess);
    EXPECT_LE(most, used);
    keep_device_memory(std::size_t(3) << 29);  // as it is by default
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

}  // namespace
}  // namespace gnnd::test
