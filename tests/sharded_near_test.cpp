// SPDX-License-Identifier: MIT
// Graphs in shards whose plan is `near`: as good as asked for, with fewer merges, in the base's own rows and ids,
// whatever ends a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/folder.h"
#include "gnnd/shards/near.h"
#include "gnnd/shards/order.h"
#include "tests/hard_sets.h"
#include "tests/io_conditions.h"
#include "tests/near.h"
#include "tests/shard_fixture.h"
#include "tests/shard_recall.h"

namespace gnnd::test {
namespace {

TEST_F(Near, IsAsGoodAsAllWithFewerMerges) {
    params_.recall = 0.995f;
    for (const HardSet& set : hard_sets()) {
        SCOPED_TRACE(set.name);
        params_.metric = set.metric;
        make_base(vectors_of(set, 1000, DType::f32).view());
        std::filesystem::remove_all(work());
        const ShardedStats all = build_sharded(*base_, params_, shards(8));
        std::filesystem::remove_all(work());
        const ShardedStats near = build_sharded(*base_, params_, this->near(8));
        expect_good(near);
        EXPECT_GE(near.recall.value, all.recall.value - 0.005);
        EXPECT_EQ(all.merges, 28);
        // Of independent components in many dimensions everybody is near everybody.
        const bool has_parts = set.name == "line1" || set.name == "plane2" || set.name == "clusters64";
        EXPECT_LE(near.merges, has_parts ? 24 : 28);
        EXPECT_EQ(near.progress.tasks, 8 + near.merges);
        EXPECT_EQ(near.progress.tasks_done, near.progress.tasks);
    }
}

/// Of equal vectors any neighbours are true ones, and shards of 25 have but 24 of them.
TEST_F(Near, FillsRowsThatAreLongerThanShards) {
    Vectors equal(100, 4, DType::f32);
    for (std::int64_t i = 0; i < 100; ++i)
        for (int c = 0; c < 4; ++c) equal.set(i, c, 0.5f);
    make_base(equal.view());
    params_.k = 40;
    EXPECT_EQ(build(near(4)).recall.value, 1);
    const KnnGraph graph = read_all(ShardedGraph(work()));
    EXPECT_EQ(std::count(graph.ids(), graph.ids() + 100 * 40, -1), 0);
    expect_valid_graph(graph, equal.view());
}

/// The sample is asked after every batch, and the first batch after which it shows enough is the last.
TEST_F(Near, EndsWhereChanceAloneWouldNotShowEnough) {
    HardSet set = benchs::hard_set("gauss");
    set.d = 10;
    make_base(vectors_of(set, 4000, DType::f32).view());
    for (const std::uint64_t seed : {5, 6, 7}) {
        SCOPED_TRACE(seed);
        std::filesystem::remove_all(work());
        params_.seed = seed;
        const ShardedStats stats = build(near(8));
        const double error = (stats.recall.value - stats.recall.low) / 2;
        EXPECT_TRUE(stats.merges == 28 || stats.recall.value >= params_.recall + std::min(error, 0.0025))
            << stats.recall.value << " after " << stats.merges;
    }
}

TEST_F(Near, ASampleNeedNotShowMoreThanItCan) {
    const auto shows = [](double value, double low) { return RecallEstimate{value, low, 1, 10, 1024}; };
    EXPECT_NEAR(shards::recall_to_end_at(shows(0.991, 0.988), 0.99), 0.9915, 1e-9);
    EXPECT_NEAR(shards::recall_to_end_at(shows(0.9, 0.8), 0.99), 0.9925, 1e-9);
    EXPECT_LT(shards::recall_to_end_at(shows(1, 0.9963), 0.999), 1) << "all are found, of too few to be sure";
    EXPECT_EQ(shards::recall_to_end_at(shows(0.99, 0.99), 0.99), 0.99) << "of all objects";
}

TEST_F(Near, PartsOfALineAreMergedWithTheNextOnly) {
    make_line(3000);
    for (const int workers : {1, 3}) {
        std::filesystem::remove_all(work());
        ShardParams params = near(15);
        params.workers = workers;
        const ShardedStats stats = build(params);
        expect_good(stats);
        EXPECT_LE(stats.merges, 18) << "of 105; 14 pairs are next to each other";
    }
}

TEST_F(Near, EveryMetricAndTypeAndSize) {
    for (const Metric metric : kMetrics)
        for (const DType dtype : kVectorDTypes) {
            if (metric == Metric::ChiSquare && dtype == DType::i8) continue;
            SCOPED_TRACE(testing::Message() << name_of(metric) << " " << name_of(dtype));
            make_base(300, 9, dtype, metric);
            std::filesystem::remove_all(work());
            expect_good(build(near(5)));
        }
    for (const auto& [n, count, workers, k] :
         {std::tuple{2, 2, 1, 1}, {2, 2, 4, 1}, {7, 7, 1, 5}, {13, 7, 2, 20}, {503, 7, 3, 33}, {410, 21, 2, 10}}) {
        SCOPED_TRACE(testing::Message() << n << " in " << count);
        make_base(n);
        params_.k = k;
        std::filesystem::remove_all(work());
        ShardParams params = near(count);
        params.workers = workers;
        expect_good(build(params));
    }
}

TEST_F(Near, OfOneShardIsAll) {
    make_base(200);
    const ShardedStats stats = build(near(1));
    expect_good(stats);
    expect_exact();
    EXPECT_EQ(stats.merges, 0);
    EXPECT_EQ(plan_sharded(*base_, params_, near(1)).disk, plan_sharded(*base_, params_, shards(1)).disk);
}

TEST_F(Near, EqualRows) {
    Vectors vectors(400, 4, DType::f32);
    for (std::int64_t i = 200; i < 400; ++i) vectors.set(i, 2, float(i));
    make_base(vectors.view());
    expect_good(build(near(6)));
}

TEST_F(Near, GoesOnAfterAFailureAnywhere) {
    make_base(200);
    int failed = 0;
    for (int task = 0;; ++task) {
        SCOPED_TRACE(testing::Message() << "at task " << task);
        std::filesystem::remove_all(work());
        int left = task;
        try {
            build(near(4), {}, failing_after(left));
            break;
        } catch (const DeviceError&) {
            ++failed;
        }
        const ShardedStats stats = build(near(4, true));
        expect_good(stats);
        EXPECT_LE(stats.progress.workers[0].done, 11 - task) << "work was done twice";
    }
    EXPECT_GE(failed, 7) << "builds and merges";
}

/// Whatever asks first after a file of this name has appeared ends the run. Tasks wait for that then.
TEST_F(Near, GoesOnAfterAnInterruptAtEveryStage) {
    VectorView view = sample_.view();
    view.n = 3000;
    make_base(view);
    for (const char* const stage : {"ordered.", "order.ibin", "local-", "lists-", "result-"}) {
        SCOPED_TRACE(stage);
        std::filesystem::remove_all(work());
        const auto is_reached = [&] {
            const std::vector<std::string> names = files();
            return std::any_of(names.begin(), names.end(),
                               [&](const std::string& name) { return name.starts_with(stage); });
        };
        ShardCallbacks callbacks;
        callbacks.interrupt = is_reached;
        const shards::ExecutorFactory waiting = with_hook([&](const Callbacks& hooks) {
            if (is_reached()) wait_for_interrupt(hooks);
        });
        EXPECT_THROW(build(near(6), callbacks, waiting), Interrupted);
        for (const std::string& name : files()) EXPECT_EQ(name.find(".tmp."), std::string::npos) << name;
        EXPECT_THROW(ShardedGraph{work()}, IoError);
        expect_good(build_sharded(*base_, params_, near(6, true)));
    }
}

TEST_F(Near, AnInterruptAtAnyQuestionOfTheFirstStageIsTaken) {
    make_base(300);
    params_.threads = 1;  // of several one asks, as often as it comes to a part
    int questions = 0;
    ShardCallbacks counting;
    counting.interrupt = [&] {
        questions += !std::filesystem::exists(manifest_path()) || !manifest().order;
        return false;
    };
    build(near(4), counting);
    ASSERT_GT(questions, 4);
    for (int at = 1; at <= questions; ++at) {
        std::filesystem::remove_all(work());
        int asked = 0;
        ShardCallbacks callbacks;
        callbacks.interrupt = [&] { return ++asked == at; };
        EXPECT_THROW(build(near(4), callbacks), Interrupted);
        expect_good(build(near(4, true)));
    }
}

TEST_F(Near, AnotherPlanIsAnotherGraph) {
    make_base(100);
    int left = 3;
    EXPECT_THROW(build(near(4), {}, failing_after(left)), DeviceError);
    EXPECT_NE(message_of<IoError>([&] { build(shards(4, true)); }).find("the plan is near, asked for is all"),
              std::string::npos);
    std::filesystem::remove_all(work());
    build(shards(4));
    EXPECT_NE(message_of<IoError>([&] { build(near(4, true)); }).find("the plan is all, asked for is near"),
              std::string::npos);
}

TEST_F(Near, NeedsARecallToReach) {
    make_base(100);
    for (const float recall : {0.f, 1.f}) {
        params_.recall = recall;
        EXPECT_EQ(message_of<InvalidArgument>([&] { build(near(4)); }),
                  "ShardParams::plan = near, which needs a BuildParams::recall of more than 0 and less than 1 to end "
                  "with; it is " +
                      std::to_string(int(recall)));
        EXPECT_THROW(plan_sharded(*base_, params_, near(4)), InvalidArgument);
    }
    EXPECT_FALSE(std::filesystem::exists(work()));
    EXPECT_EQ(message_of<InvalidArgument>([] { parse_merge_plan("next"); }),
              "unknown plan 'next'; known are all, near");
}

TEST_F(Near, StaysWithinThePlannedDisk) {
    expect_planned_disk(near(12), [&](const ShardedPlan&, std::uint64_t most, const ShardedStats&) {
        EXPECT_GT(most, std::filesystem::file_size(base_->path()));
    });
}

TEST_F(Near, ADiskThatIsFullAnywhereIsGoneOnFrom) {
    make_base(600, 4);
    int failures = 0;
    for (rlim_t room = 0; room <= 18000; room += 900) {
        std::filesystem::remove_all(work());
        try {
            const FullDisk disk(room);
            build(near(3));
        } catch (const IoError& error) {
            ++failures;
            EXPECT_NE(std::string(error.what()).find("File too large"), std::string::npos) << error.what();
        }
        for (const std::string& name : files()) EXPECT_EQ(name.find(".tmp."), std::string::npos) << name;
        expect_good(build(near(3, true)));
    }
    EXPECT_GT(failures, 10);
}

/// With the order gone everything is made anew; a part that is altered is named.
TEST_F(Near, AlteredAndLostFilesOfTheOrder) {
    make_base(200);
    int left = 6;
    EXPECT_THROW(build(near(4), {}, failing_after(left)), DeviceError);
    const shards::Manifest half = manifest();
    for (const shards::FileRecord& file : {half.vectors.value(), half.order.value()}) {
        const std::string path = work() + "/" + file.name, bytes = read_bytes(path);
        for (std::size_t i = 0; i < bytes.size(); i += bytes.size() / 50) {
            std::string altered = bytes;
            altered[i] = char(altered[i] ^ 1 << i % 8);
            write_bytes(path, altered);
            EXPECT_NE(message_of<IoError>([&] { build(near(4, true)); }).find(file.name), std::string::npos) << i;
        }
        write_bytes(path, bytes.substr(0, bytes.size() / 2));
        EXPECT_NE(message_of<IoError>([&] { build(near(4, true)); }).find(file.name), std::string::npos);
        write_bytes(path, bytes);
    }
    for (const shards::FileRecord& file : {half.vectors.value(), half.order.value()}) {
        std::filesystem::remove_all(work());
        left = 6;
        EXPECT_THROW(build(near(4), {}, failing_after(left)), DeviceError);
        std::filesystem::remove(work() + "/" + file.name);
        const ShardedStats stats = build(near(4, true));
        expect_good(stats);
        EXPECT_EQ(stats.progress.workers[0].done, 4 + stats.merges);
    }
}

TEST_F(Near, LostListsAndResultsAreMadeAgain) {
    make_base(200);
    const ShardedStats whole = build(near(4));
    EXPECT_EQ(build(near(4, true)).progress.workers[0].done, 0) << "nothing is left to do";
    expect_good(build(near(4, true)));
    std::filesystem::remove(work() + "/" + manifest().shards[2].lists->name);
    EXPECT_THROW(ShardedGraph{work()}, IoError);
    EXPECT_EQ(build(near(4, true)).progress.workers[0].done, 4 + whole.merges);
    expect_good(build(near(4, true)));

    std::filesystem::remove_all(work());
    ShardCallbacks callbacks;  // after the second result
    callbacks.interrupt = [&] {
        return std::filesystem::exists(manifest_path()) && manifest().shards[1].result.has_value();
    };
    EXPECT_THROW(build(near(4), callbacks), Interrupted);
    const shards::Manifest restoring = manifest();
    EXPECT_TRUE(restoring.merges_are_through());
    EXPECT_FALSE(restoring.vectors);
    EXPECT_FALSE(restoring.shards[2].result);
    std::filesystem::remove(work() + "/" + restoring.shards[0].result->name);
    expect_good(build(near(4, true)));
    EXPECT_EQ(manifest().shards[1].lists->name, restoring.shards[1].result->name) << "was not written again";
}

TEST_F(Near, AnOrderThatIsNoneIsRefused) {
    make_base(200);
    ShardCallbacks callbacks;
    callbacks.interrupt = [&] {
        return std::filesystem::exists(manifest_path()) && manifest().shards[0].result.has_value();
    };
    EXPECT_THROW(build(near(4), callbacks), Interrupted);
    // A forger's: with its checksum, but one row is there twice.
    shards::Manifest forged = manifest();
    const std::string path = work() + "/" + forged.order->name;
    std::vector<std::int32_t> order(200);
    io::VectorFile(path).read(0, 200, order.data());
    order[199] = order[198];
    io::write_vectors(path, {order.data(), 200, 1, DType::i32, 0});
    forged.order->checksum = io::identify(io::VectorFile(path)).checksum;
    forged.write(manifest_path());
    EXPECT_NE(message_of<IoError>([&] { build(near(4, true)); }).find("order.ibin: altered"), std::string::npos);
}

}  // namespace
}  // namespace gnnd::test
