// SPDX-License-Identifier: MIT
// Graphs in shards that know their recall: measured over all shards, by whatever runs built them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gnnd/detail/recall.h"
#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/shards/manifest.h"
#include "tests/hard_sets.h"
#include "tests/shard_fixture.h"
#include "tests/shard_recall.h"

namespace gnnd::test {
namespace {

class ShardedRecall : public Sharded {
  protected:
    ShardedRecall() {
        params_.k = 10;
        params_.device = {Device::Kind::cpu, 0};
    }
    /// Allows one tree and one iteration, so that much is missing, and it shows whether that is noticed.
    void limit() {
        params_.trees = params_.iterations = 1;
        params_.samples = 3;
    }
    void make_descriptors(std::int64_t n) {
        VectorView view = sample_.view();
        view.n = n;
        make_base(view);
    }
    void expect_recall(const ShardedStats& stats) const {
        const ShardedGraph graph(work());
        expect_true_recall(stats.recall, read_all(graph), base_->view(), params_, 1024);
        expect_same_recall(graph.recall(), stats.recall);
    }
};

TEST_F(ShardedRecall, IsThatOfTheWhole) {
    limit();
    for (const auto& [metric, dtype] : {std::pair{Metric::L2, DType::u8},
                                        {Metric::L2, DType::f32},
                                        {Metric::InnerProduct, DType::f16},
                                        {Metric::Cosine, DType::f32},
                                        {Metric::L1, DType::i8}}) {
        SCOPED_TRACE(testing::Message() << name_of(metric) << " " << name_of(dtype));
        make_base(6000, 24, dtype, metric);
        for (const auto& [count, workers] : {std::pair{1, 1}, {2, 1}, {5, 2}}) {
            SCOPED_TRACE(testing::Message() << count << " shards, " << workers << " workers");
            std::filesystem::remove_all(work());
            ShardParams params = shards(count);
            params.workers = workers;
            const ShardedStats stats = build_sharded(*base_, params_, params);
            expect_recall(stats);
            EXPECT_LT(stats.recall.value, 0.97);
            EXPECT_EQ(stats.stop, StopReason::recall_missed);
            EXPECT_GT(stats.recall_seconds, 0);
        }
    }
}

TEST_F(ShardedRecall, IsReached) {
    make_descriptors(sized(20000));
    const ShardedStats stats = build_sharded(*base_, params_, shards(3));
    expect_recall(stats);
    EXPECT_GE(stats.recall.value, 0.99);
    EXPECT_EQ(stats.stop, StopReason::recall);
}

/// Of shards so small that they and pairs of them are compared whole, and of such that are built and merged.
TEST_F(ShardedRecall, IsThatOfHardSetsWhateverThePlan) {
    for (const HardSet& set : hard_sets())
        for (const auto& [n, count, recall] : {std::tuple{900, 9, 0.99f}, {3000, 2, 0.95f}}) {
            params_.metric = set.metric;
            params_.recall = recall;
            make_base(vectors_of(set, n, DType::f32).view());
            const Truth truth(base_->view(), params_.metric, all_objects());
            for (const MergePlan plan : kMergePlans) {
                SCOPED_TRACE(testing::Message() << set.name << ", " << count << " shards, " << name_of(plan));
                std::filesystem::remove_all(work());
                ShardParams params = shards(count);
                params.plan = plan;
                params.checkpoint_seconds = 60;
                const ShardedStats stats = build_sharded(*base_, params_, params);
                EXPECT_EQ(stats.stop, StopReason::recall);
                EXPECT_GE(stats.recall.value, recall);
                const double whole = truth.recall_of(read_all(ShardedGraph(work())));
                EXPECT_GE(whole, recall - (stats.recall.high - stats.recall.low)) << "of all objects";
            }
        }
}

TEST_F(ShardedRecall, OfFewObjectsIsOfAll) {
    make_base(300);
    const ShardedStats stats = build_sharded(*base_, params_, shards(4));
    EXPECT_EQ(stats.recall.objects, 300);
    EXPECT_EQ(stats.recall.value, 1);
    make_base(5);  // with fewer neighbours than count
    std::filesystem::remove_all(work());
    EXPECT_EQ(build_sharded(*base_, params_, shards(5)).recall.value, 1);
}

TEST_F(ShardedRecall, OfOneIsExact) {
    make_descriptors(sized(5000));
    params_.recall = 1;
    for (const auto& [count, workers] : {std::pair{1, 1}, {3, 1}, {6, 2}}) {
        std::filesystem::remove_all(work());
        ShardParams params = shards(count);
        params.workers = workers;
        const ShardedStats stats = build_sharded(*base_, params_, params);
        expect_exact();
        EXPECT_EQ(stats.stop, StopReason::exact);
        expect_same_recall(stats.recall, {1, 1, 1, 10, base_->n()});
        expect_same_recall(ShardedGraph(work()).recall(), stats.recall);
    }
}

TEST_F(ShardedRecall, OfZeroIsNotMeasured) {
    make_descriptors(2000);
    params_.recall = 0;
    EXPECT_EQ(plan_sharded(*base_, params_, shards(3)).sample, 0u);
    const ShardedStats stats = build_sharded(*base_, params_, shards(3));
    EXPECT_EQ(stats.recall.objects, 0);
    EXPECT_EQ(stats.stop, StopReason::converged);
    EXPECT_EQ(ShardedGraph(work()).recall().objects, 0);
}

/// Breaks at a task, but builds and merges as others do.
class BreakingExecutor : public shards::HostExecutor {
  public:
    BreakingExecutor(shards::Store& store, const BuildParams& params, const shards::ExecutorOptions& options,
                     int tasks_left)
        : HostExecutor(store, params, options), tasks_left_(tasks_left) {}

    BuildStats build(int shard, const Callbacks& callbacks) override {
        break_if_due();
        return HostExecutor::build(shard, callbacks);
    }
    BuildStats merge(const shards::Task& pair, const Callbacks& callbacks) override {
        break_if_due();
        return HostExecutor::merge(pair, callbacks);
    }

  private:
    void break_if_due() {
        if (tasks_left_-- == 0) throw DeviceError("the device broke");
    }
    int tasks_left_;
};

TEST_F(ShardedRecall, SurvivesWhateverEndsARun) {
    make_descriptors(4000);
    limit();
    for (int task = 0; task < 10; ++task) {  // of 4 + 6
        SCOPED_TRACE(testing::Message() << "at task " << task);
        std::filesystem::remove_all(work());
        EXPECT_THROW(build(shards(4), {},
                           [&](shards::Store& store, const BuildParams& params, const auto& options) {
                               return std::make_unique<BreakingExecutor>(store, params, options, task);
                           }),
                     DeviceError);
        const ShardedStats stats = build_sharded(*base_, params_, shards(4, true));
        expect_recall(stats);
        EXPECT_EQ(stats.stop, StopReason::recall_missed);
    }
    // All tasks were done, but not the last step.
    const RecallEstimate before = ShardedGraph(work()).recall();
    shards::Manifest manifest = shards::Manifest::read(manifest_path());
    manifest.complete = false;
    manifest.recall = {};
    manifest.write(manifest_path());
    const ShardedStats stats = build_sharded(*base_, params_, shards(4, true));
    EXPECT_EQ(stats.progress.workers[0].done, 0);
    expect_recall(stats);
    expect_same_recall(stats.recall, before);
    EXPECT_EQ(stats.progress.bytes_read, std::uint64_t(base_->n() * base_->d())) << "the vectors, once";
}

TEST_F(ShardedRecall, IsKeptByTheFolderAndItsFile) {
    make_descriptors(4000);
    limit();
    const RecallEstimate measured = build_sharded(*base_, params_, shards(4)).recall;
    ASSERT_GT(measured.objects, 0);
    const ShardedStats again = build_sharded(*base_, params_, shards(4, true));
    expect_same_recall(again.recall, measured);
    EXPECT_EQ(again.stop, StopReason::recall_missed);
    const std::string file = dir_.file("one.gnnd");
    ShardedGraph(work()).write(file);
    expect_same_recall(io::GraphFile(file).recall(), measured);
    // A folder of a version that did not measure it.
    shards::Manifest manifest = shards::Manifest::read(manifest_path());
    manifest.recall = {};
    manifest.write(manifest_path());
    const ShardedStats older = build_sharded(*base_, params_, shards(4, true));
    EXPECT_EQ(older.recall.objects, 0);
    EXPECT_EQ(older.stop, StopReason::converged);
    ShardedGraph(work()).write(file);
    EXPECT_EQ(io::GraphFile(file).recall().objects, 0);
}

TEST_F(ShardedRecall, ThatNeedsMemoryIsInThePlan) {
    make_descriptors(2000);
    const ShardedPlan measured = plan_sharded(*base_, params_, shards(4));
    params_.recall = 0;
    const ShardedPlan plain = plan_sharded(*base_, params_, shards(4));
    EXPECT_GE(measured.sample, 1024u * 128 + 1024 * 10 * 3 * 8);
    EXPECT_EQ(measured.host - measured.work, plain.host - plain.work + measured.sample);
    EXPECT_EQ(measured.host_overlapped - measured.work, plain.host_overlapped - plain.work + measured.sample);
}

}  // namespace
}  // namespace gnnd::test
