// SPDX-License-Identifier: MIT
// Graphs in shards as a whole: that they are the graph of the whole, within what memory, and what is told meanwhile.
#include "gnnd/sharded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/graph_file.h"
#include "tests/io_conditions.h"
#include "tests/shard_fixture.h"

namespace gnnd::test {
namespace {

using Sizes = std::tuple<int, int, int, int>;  // n, shards, workers, k

class ShardedSizes : public Sharded, public testing::WithParamInterface<Sizes> {};

TEST_P(ShardedSizes, GiveTheGraphOfTheWhole) {
    const auto [n, count, workers, k] = GetParam();
    make_base(n);
    params_.k = k;
    ShardParams params = shards(count);
    params.workers = workers;
    const ShardedStats stats = build(params);
    expect_exact();
    EXPECT_EQ(stats.progress.tasks, count + count * (count - 1) / 2);
    EXPECT_EQ(stats.progress.tasks_done, stats.progress.tasks);
    EXPECT_EQ(int(stats.progress.workers.size()), workers);
    EXPECT_EQ(files().size(), std::size_t(count) + 2) << "lists, manifest and lock";
    const ShardedGraph graph(work());
    EXPECT_EQ(graph.shards(), count);
    EXPECT_EQ(graph.bytes(), stats.written_bytes);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ShardedSizes,
                         testing::Values(Sizes{500, 1, 1, 10}, Sizes{500, 2, 1, 10}, Sizes{501, 3, 1, 10},
                                         Sizes{503, 7, 1, 33}, Sizes{503, 7, 3, 10}, Sizes{400, 9, 2, 40},
                                         Sizes{7, 7, 1, 5}, Sizes{13, 7, 2, 20}, Sizes{2, 2, 1, 1}, Sizes{2, 1, 1, 3},
                                         Sizes{2, 2, 4, 1}, Sizes{30, 4, 1, 64}, Sizes{400, 16, 4, 10},
                                         Sizes{410, 21, 2, 10}));

TEST_F(Sharded, EveryMetricAndType) {
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::ChiSquare})
        for (const DType dtype : {DType::u8, DType::f16, DType::i8}) {
            if (metric == Metric::ChiSquare && dtype == DType::i8) continue;
            SCOPED_TRACE(testing::Message() << name_of(metric) << " " << name_of(dtype));
            make_base(200, 9, dtype, metric);
            params_.k = 8;
            std::filesystem::remove_all(work());
            build(shards(3));
            expect_exact();
        }
}

TEST_F(Sharded, RowsAreReadAcrossShards) {
    make_base(100);
    params_.k = 6;
    build(shards(7));
    const ShardedGraph graph(work() + "/manifest.json");
    EXPECT_EQ(graph.n(), 100);
    EXPECT_EQ(graph.k(), 6);
    EXPECT_EQ(graph.metric(), Metric::L2);
    EXPECT_EQ(graph.dtype(), DType::f32);
    const KnnGraph whole = read_all(graph);
    for (const auto& [begin, count] : {std::pair{0, 1}, {13, 2}, {14, 30}, {99, 1}, {5, 0}, {3, 97}}) {
        std::vector<std::int64_t> ids(std::size_t(count) * 6);
        std::vector<float> distances(ids.size());
        graph.read(begin, count, ids.data(), distances.data());
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), whole.ids_of(begin)));
        EXPECT_TRUE(std::equal(distances.begin(), distances.end(), whole.distances_of(begin)));
    }
    std::int64_t id = 0;
    float distance = 0;
    EXPECT_THROW(graph.read(100, 1, &id, &distance), InvalidArgument);
    EXPECT_TRUE(ShardedGraph::is_one(work()));
    EXPECT_TRUE(ShardedGraph::is_one(work() + "/manifest.json"));
    EXPECT_FALSE(ShardedGraph::is_one(dir_.path()));
    EXPECT_FALSE(ShardedGraph::is_one(base_->path()));
}

// Of several blocks of rows, so that shards end within them.
TEST_F(Sharded, GoesToOneFile) {
    make_base(9000, 2);
    params_.k = 40;
    build(shards(5));
    const ShardedGraph graph(work());
    const std::string one = dir_.file("one.gnnd"), other = dir_.file("other.gnnd");
    graph.write(one);
    io::write_graph(other, read_all(graph).view(), identify(*base_), graph.recall());
    EXPECT_TRUE(read_bytes(one) == read_bytes(other));
    int asked = 0;
    EXPECT_THROW(graph.write(dir_.file("none.gnnd"), [&] { return ++asked == 2; }), Interrupted);
    EXPECT_FALSE(std::filesystem::exists(dir_.file("none.gnnd")));
}

TEST_F(Sharded, ProgressAddsUp) {
    make_base(300);
    std::vector<ShardProgress> seen;
    ShardCallbacks callbacks;
    callbacks.progress = [&](const ShardProgress& progress) { seen.push_back(progress); };
    ShardParams params = shards(4);
    params.workers = 2;
    build(params, callbacks);
    ASSERT_GE(seen.size(), 2u);
    EXPECT_EQ(seen.front().tasks_done, 0);
    EXPECT_LT(seen.front().seconds_left, 0);
    for (std::size_t i = 1; i < seen.size(); ++i) {
        EXPECT_GE(seen[i].tasks_done, seen[i - 1].tasks_done);
        int done = 0;
        for (const WorkerProgress& worker : seen[i].workers) done += worker.done;
        EXPECT_EQ(done, seen[i].tasks_done);
    }
    EXPECT_EQ(seen.back().tasks_done, seen.back().tasks);
    EXPECT_EQ(seen.back().seconds_left, 0);
    EXPECT_GT(seen.back().bytes_read, 0u);
    EXPECT_GT(seen.back().bytes_written, 0u);
}

// With the least memory, with what overlapping takes, and with all there is, the graph is the same.
TEST_F(Sharded, HostMemoryStaysWithinItsBound) {
    make_base(1000);
    params_.k = 20;
    params_.device.kind = Device::Kind::cpu;
    for (const int workers : {1, 2}) {
        ShardParams params = shards(8);
        params.workers = workers;
        const ShardedPlan plan = plan_sharded(*base_, params_, params);
        params.host_memory = std::int64_t(plan.host) - 1;
        EXPECT_EQ(message_of<Error>([&] { build(params); }),
                  "host memory: " + std::to_string(plan.host) + " bytes are needed for 8 shards, allowed are " +
                      std::to_string(plan.host - 1) + "; more shards need less");
        std::uint64_t read = ~std::uint64_t(0);
        for (const std::uint64_t bound : {plan.host, plan.host_overlapped, 2 * plan.host_overlapped}) {
            std::filesystem::remove_all(work());
            params.host_memory = std::int64_t(bound);
            params.checkpoint_seconds = 1000;
            const ShardedStats stats = build(params);
            EXPECT_LE(stats.peak_host_bytes, bound);
            EXPECT_LE(stats.progress.bytes_read, read) << "more memory, more reading";
            read = stats.progress.bytes_read;
            expect_exact();
        }
    }
}

// The shards' own graphs are then never on the disk, which needs no room for them.
TEST_F(Sharded, WithoutCheckpointsOnlyListsAreWritten) {
    make_base(1000);
    params_.k = 20;
    ShardParams params = shards(6);
    const std::uint64_t with = plan_sharded(*base_, params_, params).disk;
    params.checkpoint_seconds = std::numeric_limits<double>::infinity();
    const std::uint64_t without = plan_sharded(*base_, params_, params).disk;
    EXPECT_LT(without, with - 1000 * 20 * 8);
    std::uint64_t most = 0;
    ShardCallbacks callbacks;
    callbacks.progress = [&](const ShardProgress&) {
        for (const std::string& name : files()) EXPECT_FALSE(name.starts_with("local-")) << name;
        most = std::max(most, bytes_of_files());
    };
    const ShardedStats stats = build(params, callbacks);
    expect_exact();
    EXPECT_EQ(stats.progress.bytes_written, stats.written_bytes) << "each list once";
    EXPECT_LE(most, without);
}

TEST_F(Sharded, AsFewAsThereIsHostMemoryFor) {
    make_base(1000);
    params_.k = 20;
    params_.device.kind = Device::Kind::cpu;
    const auto need = [&](int count) { return plan_sharded(*base_, params_, shards(count)).host; };
    ShardParams params = shards(0);
    EXPECT_EQ(plan_sharded(*base_, params_, params).builds, 1);
    for (const int wanted : {5, 9}) {
        std::filesystem::remove_all(work());
        params.resume = false;
        params.host_memory = std::int64_t(need(wanted));
        int fewest = 1;
        while (need(fewest) > need(wanted)) ++fewest;
        EXPECT_EQ(build(params).shards, fewest);
        expect_exact();
        params.resume = true;
        params.host_memory = 0;
        EXPECT_EQ(build(params).shards, fewest) << "as many as it has";
    }
    params.work = dir_.file("other");
    params.host_memory = 1000;
    EXPECT_EQ(message_of<Error>([&] { build(params); }),
              "no number of shards up to 1000 fits the memory that is allowed or free");
}

// With the real builders instead of exact ones.
TEST_F(Sharded, AreAsGoodAsOneBuild) {
    VectorView sample = sample_.view();
    sample.n = sized(6000);
    const io::VectorFile& base = make_base(sample);
    const Truth truth(base.view(), Metric::L2);
    params_.device = {Device::Kind::cpu, 0};
    for (const int k : {10, 32}) {
        params_.k = k;
        const double one = truth.recall_of(gnnd::build(base.view(), params_).graph);
        for (const int count : {1, 2, 3, 7}) {
            std::filesystem::remove_all(work());
            const ShardParams params = shards(count);
            const ShardedStats stats = build_sharded(base, params_, params);
            const KnnGraph graph = read_all(ShardedGraph(work()));
            expect_valid_graph(graph, base.view());
            EXPECT_GE(truth.recall_of(graph), one - 0.01) << count << " shards, k = " << k;
            EXPECT_LE(stats.peak_work_bytes, plan_sharded(base, params_, params).work);
        }
    }
}

TEST_F(Sharded, RefusesWhatCannotBe) {
    make_base(10);
    params_.k = 3;
    const auto message = [&](const auto& change) {
        ShardParams params = shards(2);
        change(params);
        return message_of<InvalidArgument>([&] { build(params); });
    };
    EXPECT_EQ(message([](ShardParams& p) { p.shards = -1; }),
              "ShardParams::shards (0: as few as fit) = -1, allowed are 0 to 1024");
    EXPECT_EQ(message([](ShardParams& p) { p.shards = 11; }),
              "ShardParams::shards = 11, " + base_->path() + " has only 10 vectors");
    EXPECT_EQ(message([](ShardParams& p) { p.work.clear(); }), "ShardParams::work is empty; it must name a folder");
    EXPECT_EQ(message([](ShardParams& p) { p.checkpoint_seconds = -1; }),
              "ShardParams::checkpoint_seconds = -1, allowed are 0 to inf");
    EXPECT_NE(message([](ShardParams& p) { p.workers = 65; }), "nothing was thrown");
    EXPECT_NE(message([](ShardParams& p) { p.host_memory = -1; }), "nothing was thrown");
    EXPECT_FALSE(std::filesystem::exists(work()));
    write_bytes(dir_.file("file"), "x");
    ShardParams params = shards(2);
    params.work = dir_.file("file");
    EXPECT_NE(message_of<IoError>([&] { build(params); }).find(params.work), std::string::npos);
}

TEST_F(Sharded, ABadVectorIsFound) {
    Vectors vectors = random_vectors(60, 8, DType::f32);
    vectors.set(43, 2, NAN);
    make_base(vectors.view());
    params_.device.kind = Device::Kind::cpu;
    EXPECT_EQ(message_of<InvalidArgument>([&] { build_sharded(*base_, params_, shards(3)); }),
              "of the vectors from 40 on: vector 3 holds NaN");
}

}  // namespace
}  // namespace gnnd::test
