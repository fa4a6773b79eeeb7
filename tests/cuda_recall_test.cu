// SPDX-License-Identifier: MIT
// The measurement of a recall on the device, and the clock that says what it took. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

/// A graph of random vectors on the device, and what meters of it need.
struct Measured {
    static constexpr std::int64_t kN = 5000;
    static constexpr int kK = 10;

    const test::Vectors vectors = test::random_vectors(kN, 24, DType::f32);
    const KnnGraph graph = build(vectors, test::converging(test::gpu_params(kK))).graph;
    const test::OnDevice<std::int32_t> held;
    const u32* const ids = reinterpret_cast<const u32*>(held.get());
    HeapResources heap;
    const OwnedStream stream{heap};
    const detail::Input input{{vectors, {}}, {}};
    const SweptSet set{input, Metric::L2, heap, stream};
    Stopwatch watch{stream};

    /// \param lacks  so many of the last ids are missing in every fifth list
    explicit Measured(int lacks = 0) : held(std::size_t(kN) * kK, without(lacks).data()) {}
    std::vector<std::int32_t> without(int lacks) const {
        std::vector<std::int32_t> all(graph.ids(), graph.ids() + kN * kK);
        for (std::int64_t i = 0; i < kN; i += 5) std::fill_n(all.begin() + (i + 1) * kK - lacks, lacks, -1);
        return all;
    }
    RecallMeter meter(double recall, std::int64_t first) {
        BuildParams params = test::gpu_params(kK);
        params.recall = float(recall);
        return {set.space(), params, {0, kN}, detail::kRecallObjects, heap, watch, stream, first};
    }
};

TEST(CudaKernelRecallMeter, CountsComparisonsBesideTheTruth) {
    SKIP_WITHOUT_GPU();
    Measured on;
    RecallMeter meter = on.meter(0.9, detail::kAnyNumber);
    EXPECT_FALSE(meter.has_truth());
    meter.find_truth(on.ids, on.kK, on.kK);
    EXPECT_TRUE(meter.has_truth());
    EXPECT_FALSE(meter.may_grow());
    const double truth = on.watch.seconds();
    EXPECT_GT(truth, 0);
    EXPECT_GT(meter.seconds_of_all_pairs(), 0);
    EXPECT_LT(meter.seconds_of_all_pairs(), 2 * truth) << "of which the last step of finding the truth is a part";
    double before = truth;
    for (int i = 0; i < 3; ++i) {
        meter.start(on.ids, on.kK, on.kK);
        const RecallEstimate estimate = meter.estimate();
        EXPECT_EQ(estimate.objects, detail::kRecallObjects);
        EXPECT_NEAR(estimate.value, test::Truth(on.vectors, Metric::L2).recall_of(on.graph), 0.01);
        EXPECT_GT(on.watch.seconds(), before);
        before = on.watch.seconds();
    }
}

TEST(CudaKernelRecallMeter, TakesRatesThatItsPaceAllows) {
    SKIP_WITHOUT_GPU();
    Measured on;
    const auto seconds = [&](double rate) {
        RecallMeter meter = on.meter(0.9, detail::kAnyNumber);
        meter.predict_all_pairs([&](SweepForm form, int k) {
            EXPECT_EQ(int(form), int(meter.form_of_all_pairs()));
            EXPECT_EQ(k, on.kK);
            return rate;
        });
        meter.find_truth(on.ids, on.kK, on.kK);
        return meter.seconds_of_all_pairs();
    };
    const double least = seconds(1e-12), most = seconds(1e6);
    EXPECT_GT(least, 1e-7);
    EXPECT_LT(least, most);
    EXPECT_LT(most, 1);
}

TEST(CudaKernelRecallMeter, GrowsToWhatItIsAllAtOnce) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kFirst = 1000;
    Measured on;
    RecallMeter whole = on.meter(0.9, detail::kAnyNumber), grown = on.meter(0.9, kFirst);
    EXPECT_FALSE(grown.may_grow());  // nothing is measured yet
    const auto estimate = [&](RecallMeter& meter) {
        meter.start(on.ids, on.kK, on.kK);
        return meter.estimate();
    };
    grown.find_truth(on.ids, on.kK, on.kK);
    EXPECT_TRUE(grown.may_grow());
    const RecallEstimate of_part = estimate(grown);
    EXPECT_EQ(of_part.objects, kFirst);
    EXPECT_NEAR(of_part.value, test::Truth(on.vectors, Metric::L2).recall_of(on.graph), 0.02);
    const double predicted = grown.seconds_of_all_pairs();
    EXPECT_GT(predicted, 0);
    for (const std::int64_t objects : {std::int64_t(1700), detail::kAnyNumber}) {
        EXPECT_TRUE(grown.may_grow());
        grown.grow(objects, on.ids, on.kK, on.kK);
        EXPECT_EQ(estimate(grown).objects, std::min(objects, detail::kRecallObjects));
        EXPECT_EQ(grown.seconds_of_all_pairs(), predicted);
    }
    EXPECT_FALSE(grown.may_grow());
    whole.find_truth(on.ids, on.kK, on.kK);
    const RecallEstimate of_all = estimate(whole), of_grown = estimate(grown);
    EXPECT_EQ(of_grown.objects, detail::kRecallObjects);
    EXPECT_EQ(of_grown.value, of_all.value);
    EXPECT_EQ(of_grown.low, of_all.low);
    EXPECT_EQ(of_grown.high, of_all.high);
}

TEST(CudaKernelRecallMeter, SaysWhereMoreObjectsMayTell) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kFirst = 1000;
    Measured on(5);
    RecallMeter any = on.meter(0.9, kFirst);
    any.find_truth(on.ids, on.kK, on.kK);
    any.start(on.ids, on.kK, on.kK);
    const double there = any.estimate().value;
    ASSERT_NEAR(there, 0.9, 0.02);
    const auto said = [&](double recall, bool all, bool counts) {
        RecallMeter meter = on.meter(recall, kFirst);
        meter.find_truth(on.ids, on.kK, on.kK);
        if (all) meter.grow(detail::kAnyNumber, on.ids, on.kK, on.kK);
        const test::OnDevice<Record> record(std::vector<Record>(1));
        const test::OnDevice<StopFlag> stop(std::vector<StopFlag>(1));
        meter.start(on.ids, on.kK, on.kK, stop, record, {u64(counts ? 0 : 1)});
        GNND_CUDA(cudaStreamSynchronize(on.stream));
        const int reached = record.read()[0].reached;
        EXPECT_EQ(stop.read()[0].raised, int(reached == 1));
        EXPECT_NEAR(meter.missing(record.read()[0]), 1 - there, 0.02);
        return reached;
    };
    EXPECT_EQ(said(there, false, true), -detail::kRecallObjects);
    EXPECT_EQ(said(there, true, true), 0) << "there are no more";
    EXPECT_EQ(said(there, false, false), 0) << "it does not count yet";
    EXPECT_EQ(said(0.6 * there, false, true), 1);
    EXPECT_EQ(said(there + 0.9 * (1 - there), false, true), 0) << "it is far off";
}

/// Where comparing takes long a part of the sample ends an easy build, and all of it one that is near its target. What
/// is found does not depend on when: the graphs of deterministic builds are the same.
TEST(CudaRecallMeter, TakesMoreObjectsWhereFewDoNotTell) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 200000, kD = 256, kTrue = 12;
    const test::Vectors few = test::random_vectors(kN, kTrue, DType::f32);
    test::Vectors vectors(kN, kD, DType::f32);
    std::vector<float> row(kTrue);
    for (std::int64_t i = 0; i < kN; ++i) {
        copy_as_f32(few.view(), i, 1, row.data());
        for (std::int64_t c = 0; c < kTrue; ++c) vectors.set(i, c, row[std::size_t(c)]);
    }
    ASSERT_LT(detail::objects_at_first(detail::kRecallObjects, kN, 2 * kD, 0.9), detail::kRecallObjects);
    BuildParams params = test::gpu_params(10);
    params.deterministic = true;
    params.list_size = 32;  // whatever recall is asked for
    params.samples = 16;
    const auto built = [&](float recall) {
        params.recall = recall;
        return build(vectors, params);
    };
    const test::Truth truth(few, Metric::L2);  // of the same distances
    const BuildResult easy = built(0.5F);
    EXPECT_EQ(easy.stats.stop, StopReason::recall);
    EXPECT_LT(easy.stats.recall.objects, detail::kRecallObjects);
    ASSERT_GT(easy.stats.recall.low, 0.5);
    ASSERT_LT(easy.stats.recall.value, 0.99);
    // The same lists are there after as many iterations, and are just what is asked for.
    const BuildResult near = built(float(easy.stats.recall.value)), again = built(float(easy.stats.recall.value));
    EXPECT_EQ(near.stats.recall.objects, detail::kRecallObjects);
    EXPECT_EQ(again.stats.recall.value, near.stats.recall.value);
    EXPECT_TRUE(std::equal(near.graph.ids(), near.graph.ids() + kN * 10, again.graph.ids()));
    for (const BuildResult* result : {&easy, &near})
        EXPECT_NEAR(result->stats.recall.value, truth.recall_of(result->graph), 0.03);
    const BuildResult plain = build(vectors, test::gpu_params(10));
    EXPECT_GE(plain.stats.recall.value, 0.99);
    EXPECT_GE(truth.recall_of(plain.graph), 0.98);
}

}  // namespace
}  // namespace gnnd::cuda
