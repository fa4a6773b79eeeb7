// SPDX-License-Identifier: MIT
// Graphs in shards that know their recall, on a GPU: the comparison of a sample with a shard, what it comes to, and
// builds and merges that are held to what was asked for. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/detail/recall.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/merge.h"
#include "gnnd/sharded.h"
#include "tests/gpu.h"
#include "tests/hard_sets.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/paths.h"
#include "tests/shard_graph.h"
#include "tests/shard_recall.h"
#include "tests/temp_dir.h"

namespace gnnd::test {
namespace {

/// On the GPU and on the CPU, distance by distance; ids of equal distances may differ.
void expect_nearest_of_the_cpu(const VectorView& vectors, const VectorView& sample,
                               const std::vector<std::int32_t>& selves, int k, Metric metric) {
    HeapResources heap;
    CountedResources counted(heap);
    BuildParams params = gpu_params(k, metric);
    const KnnGraph here = detail::nearest_of(vectors, sample, selves.data(), k, params, {}, counted);
    EXPECT_EQ(counted.held(), 0u);
    params.device = {Device::Kind::cpu, 0};
    const KnnGraph there = detail::nearest_of(vectors, sample, selves.data(), k, params, {}, heap);
    ASSERT_EQ(here.n(), sample.n);
    int wrong = 0;
    for (std::int64_t i = 0; i < sample.n && wrong < 5; ++i)
        for (int j = 0; j < k && wrong < 5; ++j) {
            const std::int32_t id = here.ids_of(i)[j], wanted_id = there.ids_of(i)[j];
            const float distance = here.distances_of(i)[j], wanted = there.distances_of(i)[j];
            const bool same = distance == wanted || std::abs(distance - wanted) <= 1e-5f * std::abs(wanted) + 1e-6f;
            if (same && (id < 0) == (wanted_id < 0) && id < vectors.n && (id < 0 || id != selves[std::size_t(i)]))
                continue;
            ++wrong;
            ADD_FAILURE() << "row " << i << " (object " << selves[std::size_t(i)] << " of the set), place " << j
                          << ": id " << id << " at " << distance << ", on the CPU " << wanted_id << " at " << wanted;
        }
}

/// Every third of the sample is one of the set.
std::vector<std::int32_t> some_inside(const Vectors& vectors, Vectors& sample) {
    std::vector<std::int32_t> selves(std::size_t(sample.view().n), -1);
    std::vector<float> row(std::size_t(vectors.view().d));
    for (std::int64_t i = 0; i < sample.view().n; i += 3) {
        selves[std::size_t(i)] = std::int32_t(i * 7 % vectors.view().n);
        copy_as_f32(vectors.view(), selves[std::size_t(i)], 1, row.data());
        for (std::int64_t c = 0; c < vectors.view().d; ++c) sample.set(i, c, row[std::size_t(c)]);
    }
    return selves;
}

TEST(CudaNearestOf, IsThatOfTheCpu) {
    SKIP_WITHOUT_GPU();
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1, Metric::ChiSquare})
        for (const DType dtype : {DType::f32, DType::f16, DType::u8, DType::i8}) {
            if (metric == Metric::ChiSquare && dtype == DType::i8) continue;
            for (const auto& [n, count, d, k] :
                 {std::tuple{5000, 700, 40, 10}, {3000, 4096, 128, 10}, {700, 300, 9, 64}}) {
                SCOPED_TRACE(testing::Message() << name_of(metric) << " " << name_of(dtype) << ", " << count << " of "
                                                << n << " x " << d << ", k = " << k);
                const Vectors vectors = vectors_for(metric, n, d, dtype);
                Vectors sample = vectors_for(metric, count, d, dtype);
                // Not the vectors of the set again.
                for (std::int64_t i = 0; i < count; ++i) sample.set(i, i % d, float(i % 100));
                const std::vector<std::int32_t> selves = some_inside(vectors, sample);
                expect_nearest_of_the_cpu(vectors, sample, selves, k, metric);
            }
        }
}

TEST(CudaNearestOf, OfFewerThanAskedForEndsWithNone) {
    SKIP_WITHOUT_GPU();
    for (const int n : {1, 2, 7}) {
        SCOPED_TRACE(n);
        const Vectors vectors = random_vectors(n, 20, DType::f32);
        Vectors sample = random_vectors(100, 20, DType::f32);
        const std::vector<std::int32_t> selves = some_inside(vectors, sample);
        expect_nearest_of_the_cpu(vectors, sample, selves, 10, Metric::L2);
    }
}

/// The nearest come last in one set; in the other very many are as near as the last.
TEST(CudaNearestOf, WhateverTheOrder) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 30000, kD = 16;
    Vectors descending(kN, kD, DType::f32), equal(kN, kD, DType::f32);
    for (std::int64_t i = 0; i < kN; ++i)
        for (std::int64_t c = 0; c < kD; ++c) {
            descending.set(i, c, float(kN - i));
            equal.set(i, c, float(i % 3));
        }
    Vectors sample(500, kD, DType::f32);
    for (std::int64_t i = 0; i < 500; ++i)
        for (std::int64_t c = 0; c < kD; ++c) sample.set(i, c, 0.25f * float(i % 5));
    const std::vector<std::int32_t> selves(500, -1);
    expect_nearest_of_the_cpu(descending, sample, selves, 10, Metric::L2);
    expect_nearest_of_the_cpu(equal, sample, selves, 10, Metric::L2);
}

class CudaShardedRecall : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
    ShardParams shard_params(int shards, int workers = 1) const {
        std::filesystem::remove_all(dir_.file("work"));
        ShardParams params;
        params.shards = shards;
        params.workers = workers;
        params.work = dir_.file("work");
        return params;
    }
    io::VectorFile file_of(const VectorView& vectors) const {
        const std::string path = dir_.file("base.npy");
        io::write_vectors(path, vectors);
        return io::VectorFile(path);
    }
    void expect_recall(const ShardedStats& stats, const io::VectorFile& base, const BuildParams& params,
                       double tolerance = 0) const {
        const ShardedGraph graph(dir_.file("work"));
        const KnnGraph all = read_all(graph);
        expect_valid_graph(all, base.view());
        expect_true_recall(stats.recall, all, base.view(), params, detail::kRecallObjects, tolerance);
        expect_same_recall(graph.recall(), stats.recall);
        EXPECT_EQ(stats.stop, stats.recall.value >= params.recall ? StopReason::recall : StopReason::recall_missed);
        EXPECT_GT(stats.recall_seconds, 0);
    }
    const io::VectorFile base_{kSampleFile};
    const TempDir dir_;
};

TEST_F(CudaShardedRecall, IsThatOfTheWhole) {
    for (const bool limited : {false, true})
        for (const auto& [shards, workers] : {std::pair{1, 1}, {2, 1}, {5, 1}, {7, 2}}) {
            SCOPED_TRACE(testing::Message()
                         << shards << " shards, " << workers << " workers, " << (limited ? "limited" : "default"));
            BuildParams params = gpu_params(32);
            if (limited) {
                params.samples = 3;
                params.trees = params.iterations = 1;
            }
            const ShardedStats stats = build_sharded(base_, params, shard_params(shards, workers));
            expect_recall(stats, base_, params);
            EXPECT_EQ(stats.stop, limited ? StopReason::recall_missed : StopReason::recall) << to_text(stats.recall);
        }
}

TEST_F(CudaShardedRecall, UnderEveryMetric) {
    for (const auto& [metric, dtype] : {std::pair{Metric::InnerProduct, DType::f16},
                                        {Metric::Cosine, DType::f32},
                                        {Metric::L1, DType::i8},
                                        {Metric::L2, DType::f32}}) {
        SCOPED_TRACE(testing::Message() << name_of(metric) << " " << name_of(dtype));
        const Vectors vectors = vectors_for(metric, 12000, 24, dtype);
        const io::VectorFile base = file_of(vectors);
        BuildParams params = gpu_params(10, metric);
        params.trees = params.iterations = 1;
        // Sums on the CPU, which the test takes for the truth, round otherwise.
        expect_recall(build_sharded(base, params, shard_params(3)), base, params, 40);
    }
}

TEST_F(CudaShardedRecall, FromTheHost) {
    BuildParams params = gpu_params(32);
    const VectorView pair{nullptr, 2 * (base_.n() / 5 + 1), base_.d(), base_.dtype(), 0};
    params.device_memory = std::int64_t(plan_memory(pair, as_merged(params)).total()) + pair.n * params.k * 8;
    expect_recall(build_sharded(base_, params, shard_params(5)), base_, params);
}

TEST_F(CudaShardedRecall, SurvivesAnInterrupt) {
    BuildParams params = gpu_params(32);
    params.samples = 3;
    params.trees = params.iterations = 1;
    for (const int stop : {1, 4, 9, 14}) {  // of 5 + 10 tasks
        SCOPED_TRACE(testing::Message() << "at task " << stop);
        ShardParams shards = shard_params(5);
        shards.checkpoint_seconds = 0;
        int done = 0;
        ShardCallbacks callbacks;
        callbacks.progress = [&](const ShardProgress& progress) { done = progress.tasks_done; };
        callbacks.interrupt = [&] { return done >= stop; };
        ShardedStats stats;
        try {
            stats = build_sharded(base_, params, shards, callbacks);
        } catch (const Interrupted&) {
            shards.resume = true;
            stats = build_sharded(base_, params, shards);
        }
        expect_recall(stats, base_, params);
    }
}

TEST_F(CudaShardedRecall, OfOneIsExact) {
    const Vectors hard = vectors_of(hard_sets()[2], 9000, DType::f32);
    const io::VectorFile floats = file_of(hard);
    for (const io::VectorFile* base : {&base_, &floats})
        for (const auto& [shards, workers] : {std::pair{1, 1}, {3, 1}, {6, 2}}) {
            SCOPED_TRACE(testing::Message() << base->path() << " in " << shards << " shards by " << workers);
            BuildParams params = gpu_params(20);
            params.recall = 1;
            const ShardedStats stats = build_sharded(*base, params, shard_params(shards, workers));
            EXPECT_EQ(stats.stop, StopReason::exact);
            expect_same_recall(stats.recall, {1, 1, 1, 10, base->n()});
            const KnnGraph graph = read_all(ShardedGraph(dir_.file("work")));
            expect_valid_graph(graph, base->view());
            EXPECT_EQ(Truth(base->view(), Metric::L2, 20).recall_of(graph), 1);
        }
}

/// Data on which the paper's stopping rule ends far below: builds and merges go on until they are there.
TEST_F(CudaShardedRecall, IsReachedOnHardData) {
    for (const std::size_t which : {0u, 1u, 4u, 9u}) {
        const HardSet set = hard_sets()[which];
        const io::VectorFile base = file_of(vectors_of(set, 20000, DType::f32));
        for (const int k : {10, 64}) {
            SCOPED_TRACE(testing::Message() << set.name << ", k = " << k);
            const BuildParams params = gpu_params(k, set.metric);
            const ShardedStats stats = build_sharded(base, params, shard_params(3));
            EXPECT_EQ(stats.stop, StopReason::recall) << to_text(stats.recall);
            EXPECT_GE(Truth(base.view(), set.metric).recall_of(read_all(ShardedGraph(dir_.file("work")))), 0.985);
        }
    }
}

/// The sample has all vectors, those of shards too that come later.
TEST_F(CudaShardedRecall, ABadVectorIsNamedByItsShard) {
    Vectors vectors = random_vectors(3000, 8, DType::f32);
    vectors.set(2043, 2, NAN);
    const io::VectorFile base = file_of(vectors);
    EXPECT_EQ(message_of<InvalidArgument>([&] { build_sharded(base, gpu_params(10), shard_params(3)); }),
              "of the vectors from 2000 on: vector 43 holds NaN");
}

/// A limit on the trees that is none keeps it from comparing all pairs, and its lists grow instead.
TEST_F(CudaShardedRecall, OfAMergeIsReachedByLongerLists) {
    const Vectors vectors = vectors_of(hard_sets()[0], 20000, DType::f32);
    for (const Init init : kInits)
        for (const int k : {10, 64}) {
            SCOPED_TRACE(testing::Message() << name_of(init) << ", k = " << k);
            BuildParams params = gpu_params(k);
            params.init = init;
            params.trees = 8;
            const VectorView all = vectors.view();
            VectorView first = all, second = all;
            first.n = 8000;
            second.data = all.row(8000);
            second.n = all.n - 8000;
            const KnnGraph g1 = build_exact(first, params).graph, g2 = build_exact(second, params).graph;
            const BuildResult merged = merge(first, g1, second, g2, params);
            expect_valid_graph(merged.graph, all);
            EXPECT_TRUE(merged.stats.stop == StopReason::recall)
                << name_of(merged.stats.stop) << ", " << to_text(merged.stats.recall);
            EXPECT_GE(Truth(all, Metric::L2).recall_of(merged.graph), 0.985);
            for (std::size_t i = 0; i < merged.stats.iterations.size(); ++i)
                EXPECT_EQ(merged.stats.iterations[i].iteration, int(i));
        }
}

}  // namespace
}  // namespace gnnd::test
