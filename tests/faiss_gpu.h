// SPDX-License-Identifier: MIT
#pragma once
/// \file faiss_gpu.h
/// Helpers that the tests of faiss_ext on the GPU side of FAISS share.

#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "faiss_ext/faiss_resources.h"
#include "faiss_ext/graph_builder.h"
#include "tests/faiss_helpers.h"
#include "tests/gpu.h"
#include "tests/invariants.h"

namespace gnnd::test {

using faiss_ext::ExactGraphBuilder;
using faiss_ext::FaissResources;
using faiss_ext::GnndGraphBuilder;
using faiss_ext::GnndParams;
using faiss_ext::Gpu;
using faiss_ext::idx_t;
using faiss_ext::IvfpqGraphBuilder;
using faiss_ext::VectorSource;

inline constexpr int kDim = 24;
inline constexpr idx_t kRows = 3000;

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

}  // namespace gnnd::test
