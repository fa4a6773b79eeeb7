// SPDX-License-Identifier: MIT
#pragma once
/// \file cuda_operations.h
/// Operations on graphs, run on the CPU and on a GPU whose memory holds what no result may hold.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gnnd/operations.h"
#include "tests/cpu.h"
#include "tests/gpu.h"
#include "tests/operations.h"

namespace gnnd::test {

inline constexpr Device kGpu{Device::Kind::cuda, 0};

/// Device memory that holds what no result may hold.
class Poisoned final : public Resources {
  public:
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    void* allocate_device(std::size_t bytes, Stream stream) override {
        void* const memory = heap_.allocate_device(bytes, stream);
        GNND_CUDA(cudaMemsetAsync(memory, 0xa5, bytes, stream));
        return memory;
    }
    std::size_t free_device_memory() override { return heap_.free_device_memory(); }
    void deallocate_device(void* pointer, std::size_t bytes, Stream stream) noexcept override {
        heap_.deallocate_device(pointer, bytes, stream);
    }

  private:
    HeapResources heap_;
};

class CudaOperations : public testing::TestWithParam<Metric> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

/// Memory of the GPU for a matrix.
struct RoomOnDevice {
    std::optional<OnDevice<std::int64_t>> indptr;
    std::optional<OnDevice<std::int32_t>> indices;
    std::optional<OnDevice<float>> values;
    int asked = 0;

    CsrRoom room() {
        return [this](std::int64_t n, std::int64_t entries) {
            ++asked;
            indptr.emplace(std::size_t(n) + 1);
            indices.emplace(std::size_t(entries));
            values.emplace(std::size_t(entries));
            return CsrSpan{*indptr, *indices, *values};
        };
    }
    CsrGraph read() const {
        const auto host = []<class T>(const OnDevice<T>& array) {
            const std::vector<T> copy = array.read();
            return Array<T>(copy.begin(), copy.end());
        };
        CsrGraph matrix{0, host(*indptr), host(*indices), host(*values)};
        matrix.n = std::ssize(matrix.indptr) - 1;
        return matrix;
    }
};

/// The operation on the CPU and on the GPU, as expect(on_cpu, on_gpu); a matrix once more with room for it there.
template <class Operation, class Params, class Expect>
void on_both(const Operation& operation, const KnnGraphView& graph, Params params, const Expect& expect) {
    Poisoned poisoned;
    params.device = kCpu;
    const auto on_cpu = operation(graph, params, {}, nullptr);
    params.device = kGpu;
    expect(on_cpu, operation(graph, params, {}, &poisoned));
    if constexpr (std::is_same_v<decltype(on_cpu), const CsrGraph>) {
        RoomOnDevice there;
        params.room = there.room();
        const CsrGraph returned = operation(graph, params, {}, &poisoned);
        EXPECT_EQ(returned.n, graph.n);
        EXPECT_TRUE(returned.indices.empty() && returned.entries() == 0);
        EXPECT_EQ(there.asked, 1);
        expect(on_cpu, there.read());
    }
}

inline void expect_equal(const CsrGraph& a, const CsrGraph& b) {
    expect_valid(b, a.n);
    EXPECT_EQ(a.indptr, b.indptr);
    EXPECT_EQ(a.indices, b.indices);
    EXPECT_EQ(a.values, b.values);
}

/// Weights that a search for sigma has made.
inline void expect_near(const CsrGraph& a, const CsrGraph& b) {
    expect_valid(b, a.n);
    EXPECT_EQ(a.indptr, b.indptr);
    ASSERT_EQ(a.indices, b.indices);
    for (std::size_t e = 0; e < a.values.size(); ++e) ASSERT_NEAR(a.values[e], b.values[e], 3e-5) << e;
}

using OfEdges = CsrGraph (*)(const KnnGraphView&, const EdgeParams&, const Callbacks&, Resources*);
inline constexpr OfEdges kOfEdges[] = {neighbors_graph, symmetric_graph, mutual_graph};

}  // namespace gnnd::test
