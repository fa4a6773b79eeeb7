// SPDX-License-Identifier: MIT
// The measurement of a recall on the device, and the clock that says what it took. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "gnnd/cuda/recall/recall.h"
#include "gnnd/cuda/runtime/stopwatch.h"
#include "tests/gpu.h"
#include "tests/reference.h"

namespace gnnd::cuda {
namespace {

TEST(CudaKernelStopwatch, CountsPiecesOnceAndNothingElse) {
    SKIP_WITHOUT_GPU();
    HeapResources heap;
    const OwnedStream stream(heap);
    constexpr std::size_t kBytes = std::size_t(256) << 20;
    const DeviceMemory memory(heap, kBytes, stream);
    const auto work = [&](int times) {
        for (int i = 0; i < times; ++i) GNND_CUDA(cudaMemsetAsync(memory.data(), i, kBytes, stream));
    };
    Stopwatch watch(stream);
    EXPECT_EQ(watch.seconds(), 0);
    work(2);  // the first one may be slow
    {
        const Stopwatch::Piece piece(watch);
        work(2);
    }
    const double one = watch.seconds();
    EXPECT_GT(one, 0);
    work(40);
    {
        const Stopwatch::Piece piece(watch), inner(watch);
        work(2);
    }
    EXPECT_GT(watch.seconds(), 1.2 * one);
    EXPECT_LT(watch.seconds(), 8 * one);
}

TEST(CudaKernelRecallMeter, CountsComparisonsBesideTheTruth) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 5000;
    constexpr int kK = 10;
    const test::Vectors vectors = test::random_vectors(kN, 24, DType::f32);
    BuildParams params = test::converging(test::gpu_params(kK));
    const KnnGraph graph = build(vectors, params).graph;
    params.recall = 0.9f;
    const test::OnDevice<std::int32_t> held(std::size_t(kN) * kK, graph.ids());
    const auto* ids = reinterpret_cast<const u32*>(held.get());
    HeapResources heap;
    const OwnedStream stream(heap);
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set(input, params.metric, heap, stream);
    Stopwatch watch(stream);
    RecallMeter meter(set.space(), params, {0, kN}, detail::kRecallObjects, heap, watch, stream);
    EXPECT_FALSE(meter.has_truth());
    meter.find_truth(ids, kK, kK);
    EXPECT_TRUE(meter.has_truth());
    const double truth = watch.seconds();
    EXPECT_GT(truth, 0);
    EXPECT_NEAR(meter.seconds_of_all_pairs(), truth * kN / (2.0 * detail::kRecallObjects), 0.2 * truth);
    double before = truth;
    for (int i = 0; i < 3; ++i) {
        meter.start(ids, kK, kK);
        const RecallEstimate estimate = meter.estimate();
        EXPECT_EQ(estimate.objects, detail::kRecallObjects);
        EXPECT_NEAR(estimate.value, test::Truth(vectors, params.metric).recall_of(graph), 0.01);
        EXPECT_GT(watch.seconds(), before);
        before = watch.seconds();
    }
}

}  // namespace
}  // namespace gnnd::cuda
