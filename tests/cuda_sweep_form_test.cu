// SPDX-License-Identifier: MIT
// Each form of numbers that a comparison of all pairs can use, against the host. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "benchs/hard.h"
#include "gnnd/builder.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "tests/cuda_lists.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/reference.h"

namespace gnnd::cuda {
namespace {

/// The graph made exact in this form.
KnnGraph exact_in(SweepForm form, const VectorView& vectors, const KnnGraph& start) {
    const std::int64_t n = start.n(), k = start.k();
    const test::OnDevice<std::int32_t> ids(std::size_t(n * k), start.ids());
    const test::OnDevice<float> distances(std::size_t(n * k), start.distances()), bounds(std::size_t(n), nullptr);
    const Lists lists{.ids = reinterpret_cast<u32*>(ids.get()),
                      .distances = distances.get(),
                      .bounds = bounds.get(),
                      .length = int(k),
                      .segments = 1};
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, start.metric(), heap, stream);
    SweepSpace space = set.space();
    space.spare = std::size_t(1) << 30;
    open_graph(start.metric(), lists, n, stream);
    {
        Sweep sweep(space, int(k), heap, stream);
        sweep.make_exact(lists, form, {});
        EXPECT_EQ(int(sweep.form()), int(form));
    }
    close_graph(start.metric(), lists, n, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    KnnGraph graph(n, k, start.metric());
    GNND_CUDA(cudaMemcpy(graph.ids(), ids.get(), std::size_t(n * k) * 4, cudaMemcpyDeviceToHost));
    GNND_CUDA(cudaMemcpy(graph.distances(), distances.get(), std::size_t(n * k) * 4, cudaMemcpyDeviceToHost));
    return graph;
}

TEST(CudaKernelSweep, IsExactInEveryForm) {
    SKIP_WITHOUT_GPU();
    // Rows of one tile, of some that stay in shared memory, and of some that do not.
    for (const std::int64_t d : {20, 100, 700})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
            const test::Vectors vectors = test::vectors_for(metric, 3000, d, DType::f32);
            BuildParams params = test::converging(test::gpu_params(10, metric));
            params.iterations = 1;
            const KnnGraph start = build(vectors, params).graph;
            const test::Truth truth(vectors, metric);
            for (const SweepForm form : {SweepForm::halves, SweepForm::split, SweepForm::floats}) {
                SCOPED_TRACE(testing::Message() << name_of(metric) << ", d = " << d << ", form " << int(form));
                const KnnGraph graph = exact_in(form, vectors, start);
                test::expect_valid_graph(graph, vectors);
                EXPECT_GE(truth.recall_of(graph), 0.9995);  // float32 may take two for equally far
            }
        }
}

/// Rows in the order of a walk, so that the columns that come first say little of those behind them; lists that hold
/// what is near, what is far, or nothing, so that some rows have far more hits than places.
TEST(CudaKernelSweep, FindsAsManyAsAreWantedFromAnyLists) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 40000;
    constexpr int kK = 20;
    constexpr u32 kObjects = 300;
    const Wanted wanted{.whole = 50, .at = 6};
    std::int64_t d = 0;
    const std::vector<float> rows = benchs::make_hard("walk", kN, d);
    const VectorView vectors{rows.data(), kN, d, DType::f32, 0};
    std::vector<std::int32_t> near(std::size_t(kN * kK), -1), objects;
    for (std::int64_t i = 0; i < kN; ++i)
        for (int j = 0; j < kK && i % 3 != 0; ++j)
            near[std::size_t(i * kK + j)] = std::int32_t((i + (i % 3 == 1 ? 1 + j : kN / 2 + 100 * j)) % kN);
    for (u32 i = 0; i < kObjects; ++i) objects.push_back(std::int32_t(i * 7919LL % kN));
    const test::OnDevice<std::int32_t> ids(near);
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, Metric::L2, heap, stream);
    Sweep sweep(set.space(), kK, heap, stream);
    // All of them, then fewer in the same memory.
    for (const u32 first : {0u, 100u}) {
        const u32 count = kObjects - first;
        const Lists found =
            sweep.nearest_of(objects.data() + first, count, reinterpret_cast<const u32*>(ids.get()), kK, kK, wanted);
        std::vector<float> distances(count * kK);
        GNND_CUDA(cudaMemcpyAsync(distances.data(), found.distances, distances.size() * sizeof(float),
                                  cudaMemcpyDeviceToHost, stream));
        GNND_CUDA(cudaStreamSynchronize(stream));
        std::vector<float> exact(kN);
        for (u32 i = 0; i < count; ++i) {
            const std::int64_t object = objects[first + i];
            for (std::int64_t other = 0; other < kN; ++other) {
                exact[std::size_t(other)] = other == object ? INFINITY : 0;
                for (std::int64_t c = 0; c < d; ++c) {
                    const float apart = rows[std::size_t(object * d + c)] - rows[std::size_t(other * d + c)];
                    exact[std::size_t(other)] += apart * apart;
                }
            }
            std::partial_sort(exact.begin(), exact.begin() + kK, exact.end());
            for (int j = 0; j < (i < wanted.whole ? kK : wanted.at); ++j)
                ASSERT_NEAR(distances[i * kK + u32(j)], exact[std::size_t(j)], 1e-5 * exact[std::size_t(j)])
                    << "object " << object << ", neighbour " << j;
        }
    }
}

}  // namespace
}  // namespace gnnd::cuda
