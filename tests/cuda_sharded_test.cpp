// SPDX-License-Identifier: MIT
// Graphs in shards on a GPU: with shards kept on the device and without, several workers, interrupts. Without a GPU all
// of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <utility>

#include "gnnd/error.h"
#include "gnnd/sharded.h"
#include "gnnd/shards/cuda/fold.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/paths.h"
#include "tests/reference.h"
#include "tests/shard_graph.h"
#include "tests/temp_dir.h"

namespace gnnd::test {
namespace {

struct ShardedCase {
    const char* name;
    int shards, workers;
    Init init;
    /// Of device memory: for all shards, for three of them, or for one merge from host memory.
    enum class Room { all, three, none } room;
    friend std::ostream& operator<<(std::ostream& out, const ShardedCase& c) { return out << c.name; }
};

using Room = ShardedCase::Room;

/// Device memory of a worker that keeps three shards, each half of the pair: vectors, local graph and lists; and the
/// result and work of a merge.
std::size_t bytes_of_three(const VectorView& pair, const BuildParams& params) {
    const MemoryPlan plan = plan_memory(pair, as_merged(params));
    const auto graphs = std::size_t(pair.n * params.k * 8);
    return 3 * (plan.vectors + 2 * graphs) / 2 + graphs + plan.vectors + plan.work;
}

class CudaSharded : public testing::TestWithParam<ShardedCase> {
  protected:
    ShardParams shard_params(int shards, int workers) const {
        ShardParams params;
        params.shards = shards;
        params.workers = workers;
        params.work = dir_.file("work");
        return params;
    }
    std::int64_t memory_for(const ShardedCase& c, const BuildParams& params) const {
        if (c.room == Room::all) return 0;
        const VectorView pair{nullptr, 2 * (base_.n() / c.shards + 1), base_.d(), base_.dtype(), 0};
        if (c.room == Room::none)
            return c.workers *
                   std::int64_t(plan_memory(pair, as_merged(params)).total() + std::size_t(pair.n * params.k * 8));
        return c.workers * std::int64_t(bytes_of_three(pair, params) + 20000);  // for what rounding takes
    }
    const io::VectorFile base_{kSampleFile};
    const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(
    CudaSharded, CudaSharded,
    testing::Values(ShardedCase{"One", 1, 1, Init::projection, Room::all},
                    ShardedCase{"Two", 2, 1, Init::projection, Room::all},
                    ShardedCase{"Three", 3, 1, Init::projection, Room::all},
                    ShardedCase{"Seven", 7, 1, Init::projection, Room::all},
                    ShardedCase{"SevenInThreeSlots", 7, 1, Init::projection, Room::three},
                    ShardedCase{"SevenFromTheHost", 7, 1, Init::projection, Room::none},
                    ShardedCase{"SevenInThreeSlotsFromRandomLists", 7, 1, Init::random, Room::three},
                    ShardedCase{"SevenFromRandomLists", 7, 1, Init::random, Room::all},
                    ShardedCase{"EightByTwoWorkers", 8, 2, Init::projection, Room::all},
                    ShardedCase{"TenByTwoWorkersInThreeSlots", 10, 2, Init::projection, Room::three}),
    testing::PrintToStringParamName());

TEST_P(CudaSharded, IsAsGoodAsOneBuild) {
    SKIP_WITHOUT_GPU();
    const ShardedCase& c = GetParam();
    BuildParams params = converging(gpu_params(32));
    params.init = c.init;
    params.device_memory = memory_for(c, params);
    build_sharded(base_, params, shard_params(c.shards, c.workers));
    const KnnGraph graph = read_all(ShardedGraph(dir_.file("work")));
    ASSERT_NO_FATAL_FAILURE(expect_valid_graph(graph, base_.view()));
    const Truth truth(base_.view(), Metric::L2);
    params.init = Init::projection;
    params.device_memory = 0;
    EXPECT_GE(truth.recall_of(graph), truth.recall_of(build(base_.view(), params).graph) - 0.005);
}

TEST_P(CudaSharded, GoesOnAfterAnInterrupt) {
    SKIP_WITHOUT_GPU();
    const ShardedCase& c = GetParam();
    if (c.shards == 1) GTEST_SKIP() << "one task";
    BuildParams params = gpu_params(32);
    params.init = c.init;
    params.device_memory = memory_for(c, params);
    ShardCallbacks callbacks;
    int done = 0;
    callbacks.progress = [&](const ShardProgress& progress) { done = progress.tasks_done; };
    callbacks.interrupt = [&] { return done >= 2; };
    ShardParams shards = shard_params(c.shards, c.workers);
    shards.checkpoint_seconds = 0;
    EXPECT_THROW(build_sharded(base_, params, shards, callbacks), Interrupted);
    EXPECT_THROW(ShardedGraph(shards.work), IoError);
    shards.resume = true;
    build_sharded(base_, params, shards);
    expect_valid_graph(read_all(ShardedGraph(shards.work)), base_.view());
}

/// Workers that keep all shards, on one device or each on its own, and take lists over from each other.
class CudaShardsTakenOver : public testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::device_count(&why) < GetParam()) GTEST_SKIP() << GetParam() << " GPUs are needed " << why;
        params_.deterministic = true;
    }
    ShardParams shard_params(int workers, double checkpoint_seconds) const {
        ShardParams params;
        params.shards = 13;
        params.work = dir_.file("work");
        params.workers = workers;
        params.checkpoint_seconds = checkpoint_seconds;
        for (int device = 0; device < GetParam(); ++device) params.devices.push_back({Device::Kind::cuda, device});
        // Too little for what workers exchange: then it would be read from the disk again.
        params.host_memory = std::int64_t(plan_sharded(base_, params_, params).host_overlapped);
        return params;
    }
    KnnGraph graph_of_one() const {
        build_sharded(base_, params_, shard_params(1, 1000));
        return finished();
    }
    KnnGraph finished() const {
        KnnGraph graph = read_all(ShardedGraph(dir_.file("work")));
        std::filesystem::remove_all(dir_.file("work"));
        return graph;
    }
    const io::VectorFile base_{kSampleFile};
    const TempDir dir_;
    BuildParams params_ = gpu_params(32);
};

INSTANTIATE_TEST_SUITE_P(Devices, CudaShardsTakenOver, testing::Values(1, 2));

TEST_P(CudaShardsTakenOver, GiveTheGraphOfOneWorker) {
    const KnnGraph wanted = graph_of_one();
    expect_valid_graph(wanted, base_.view());
    for (const int workers : {2, 3})
        for (const double seconds : {0.0, 1000.0}) {
            SCOPED_TRACE(testing::Message() << workers << " workers, checkpoints every " << seconds);
            const ShardParams params = shard_params(workers, seconds);
            const ShardedStats stats = build_sharded(base_, params_, params);
            EXPECT_EQ(stats.progress.bytes_read, std::uint64_t(base_.n() * base_.d())) << "only vectors, and once";
            EXPECT_LE(stats.peak_host_bytes, std::uint64_t(params.host_memory));
            EXPECT_TRUE(same_graph(finished(), wanted));
        }
}

TEST_P(CudaShardsTakenOver, GoOnAfterAnInterruptAnywhere) {
    const KnnGraph wanted = graph_of_one();
    for (const double seconds : {0.0, 1000.0})
        for (const int stop : {1, 9, 20, 40, 60, 80}) {  // of 13 + 78 tasks
            SCOPED_TRACE(testing::Message() << "at task " << stop << ", checkpoints every " << seconds);
            ShardParams params = shard_params(2, seconds);
            int done = 0, left = 0;
            ShardCallbacks callbacks;
            callbacks.progress = [&](const ShardProgress& progress) {
                done = progress.tasks_done;
                left = progress.tasks - done;
            };
            callbacks.interrupt = [&] { return done >= stop; };
            try {
                build_sharded(base_, params_, params, callbacks);
            } catch (const Interrupted&) {
                params.resume = true;
                callbacks.interrupt = nullptr;
                const int most = left;
                const ShardedStats stats = build_sharded(base_, params_, params, callbacks);
                int again = 0;
                for (const WorkerProgress& worker : stats.progress.workers) again += worker.done;
                EXPECT_LE(again, most) << "something was lost";
            }
            EXPECT_TRUE(same_graph(finished(), wanted));
        }
}

// As few as keep three shards within the device memory that is allowed.
TEST(CudaShardedMemory, DecidesTheNumberOfShards) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile base(kSampleFile);
    const TempDir dir;
    BuildParams params = converging(gpu_params(32));
    ShardParams shards;
    shards.work = dir.file("work");
    const std::size_t whole = plan_memory(base.view(), params).total();
    int before = 1;
    for (const std::size_t part : {1, 2, 4}) {
        params.device_memory = std::int64_t(whole / part);
        const int count = plan_sharded(base, params, shards).builds;
        if (part == 1) {
            EXPECT_EQ(count, 1);
        } else {
            EXPECT_GT(count, before) << part;
        }
        before = count;
    }
    const ShardedStats stats = build_sharded(base, params, shards);
    EXPECT_EQ(stats.shards, before);
    EXPECT_LE(stats.peak_work_bytes, std::uint64_t(params.device_memory));
    expect_valid_graph(read_all(ShardedGraph(shards.work)), base.view());
    params.device_memory = 10000;
    EXPECT_THROW(plan_sharded(base, params, shards), Error);
}

// Workers that keep three shards each, so that neither can reach the other's memory.
TEST(CudaShardsOfAFunction, MayMakeAnotherDeviceCurrent) {
    if (cuda::device_count() < 2) GTEST_SKIP() << "one GPU only";
    const io::VectorFile file(kSampleFile);
    std::atomic<int> calls = 0;
    const io::VectorReader base(file.n(), file.d(), file.dtype(),
                                [&](std::int64_t begin, std::int64_t count, void* out) {
                                    file.read(begin, count, out);
                                    if (cudaSetDevice(calls++ % 2) != cudaSuccess) throw Error("no such device");
                                });
    const TempDir dir;
    BuildParams params = gpu_params(10);
    ShardParams shards;
    shards.shards = 8;
    shards.devices = {{Device::Kind::cuda, 0}, {Device::Kind::cuda, 1}};
    const VectorView pair{nullptr, 2 * (file.n() / shards.shards + 1), file.d(), file.dtype(), 0};
    const std::size_t of_three = bytes_of_three(pair, params);
    for (const std::int64_t memory : {std::int64_t(0), std::int64_t(of_three + of_three / 20)}) {
        shards.work = dir.file("work" + std::to_string(memory));
        params.device_memory = memory;
        build_sharded(base, params, shards);
        const KnnGraph graph = read_all(ShardedGraph(shards.work));
        expect_valid_graph(graph, file.view());
        EXPECT_GE(Truth(file.view(), Metric::L2).recall_of(graph), 0.98);
    }
    EXPECT_GT(calls, 0);
}

// Against the host's.
TEST(CudaFold, KeepsTheBestOfBoth) {
    SKIP_WITHOUT_GPU();
    std::mt19937 random(3);
    for (const Metric metric : {Metric::L2, Metric::InnerProduct})
        for (const auto& [k, width] : {std::pair{1, 1}, {10, 10}, {33, 64}, {64, 33}, {kMaxK, kMaxK}}) {
            const std::int64_t n = 1000, own = 2 * kMaxK, partner_begin = 10 * own;
            const detail::Partner partner{std::int32_t(own / 2), std::int32_t(own), partner_begin};
            KnnGraph lists(n, k, metric), found(n, width, metric);
            for (KnnGraph* graph : {&lists, &found})
                for (std::int64_t i = 0; i < n; ++i) {
                    std::vector<std::int32_t> ids(own);
                    std::iota(ids.begin(), ids.end(), 0);
                    std::shuffle(ids.begin(), ids.end(), random);
                    std::vector<std::pair<float, std::int32_t>> row(random() % 4 == 0 ? random() % (graph->k() + 1)
                                                                                      : graph->k());
                    for (std::size_t j = 0; j < row.size(); ++j) row[j] = {float(random() % 20), ids[j]};  // many ties
                    std::sort(row.begin(), row.end());
                    for (std::int64_t j = 0; j < graph->k(); ++j) {
                        const bool there = j < std::int64_t(row.size());
                        graph->ids()[i * graph->k() + j] = there ? row[j].second : -1;
                        graph->distances()[i * graph->k() + j] = !there                  ? worst_value(metric)
                                                                 : is_similarity(metric) ? -row[j].first
                                                                                         : row[j].first;
                    }
                }
            const OnDevice<std::int32_t> found_ids(n * width, found.ids());
            const OnDevice<float> found_distances(n * width, found.distances());
            const auto expect_same = [&]<class Id>(Id shift) {
                std::vector<Id> ids(lists.ids(), lists.ids() + n * k);
                for (Id& id : ids) id = id < 0 ? id : id + shift;
                std::vector<float> distances(lists.distances(), lists.distances() + n * k);
                const detail::Partner shifted{partner.first, partner.last, partner.begin + std::int64_t(shift)};
                const OnDevice<Id> list_ids(n * k, ids.data());
                const OnDevice<float> list_distances(n * k, distances.data());
                cuda::fold({found_ids, found_distances, n, width, metric}, shifted,
                           cuda::DeviceRows<Id>{list_ids, list_distances, n, k, metric}, nullptr);
                EXPECT_GT(detail::fold(found, shifted, k, ids.data(), distances.data(), 2), 0);
                EXPECT_EQ(list_ids.read(), ids) << k << " " << width;
                EXPECT_EQ(list_distances.read(), distances);
            };
            expect_same(std::int32_t(0));
            expect_same(std::int64_t(1) << 33);
        }
}

}  // namespace
}  // namespace gnnd::test
