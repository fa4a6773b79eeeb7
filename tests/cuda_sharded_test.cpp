// Graphs in shards on a GPU: with shards kept on the device and without, several workers, interrupts. Without a GPU all
// of it is skipped.
#include <gtest/gtest.h>

#include <ostream>

#include "gnnd/error.h"
#include "gnnd/sharded.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/shard_graph.h"
#include "tests/temp_dir.h"

namespace gnnd::test {
namespace {

struct ShardedCase {
    const char* name;
    int shards, workers;
    Init init;
    /// Less than shards kept on the device take, enough for one merge from host memory.
    bool short_of_memory;
    friend std::ostream& operator<<(std::ostream& out, const ShardedCase& c) { return out << c.name; }
};

class CudaSharded : public testing::TestWithParam<ShardedCase> {
  protected:
    ShardParams shard_params(int shards, int workers) const {
        ShardParams params;
        params.shards = shards;
        params.workers = workers;
        params.work = dir_.file("work");
        return params;
    }
    const io::VectorFile base_{GNND_TEST_DATA "/photosift20k.u8bin"};
    const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(CudaSharded, CudaSharded,
                         testing::Values(ShardedCase{"One", 1, 1, Init::projection, false},
                                         ShardedCase{"Two", 2, 1, Init::projection, false},
                                         ShardedCase{"Three", 3, 1, Init::projection, false},
                                         ShardedCase{"Seven", 7, 1, Init::projection, false},
                                         ShardedCase{"SevenShortOfMemory", 7, 1, Init::projection, true},
                                         ShardedCase{"SevenFromRandomLists", 7, 1, Init::random, false},
                                         ShardedCase{"EightByTwoWorkers", 8, 2, Init::projection, false}),
                         testing::PrintToStringParamName());

TEST_P(CudaSharded, IsAsGoodAsOneBuild) {
    SKIP_WITHOUT_GPU();
    const ShardedCase& c = GetParam();
    BuildParams params = gpu_params(32);
    params.init = c.init;
    if (c.short_of_memory) {
        const VectorView pair{nullptr, 2 * (base_.n() / c.shards + 1), base_.d(), base_.dtype(), 0};
        params.device_memory = std::int64_t(plan_memory(pair, params).total() + pair.n * params.k * 8);
    }
    build_sharded(base_, params, shard_params(c.shards, c.workers));
    const KnnGraph graph = read_all(ShardedGraph(dir_.file("work")));
    ASSERT_NO_FATAL_FAILURE(expect_valid_graph(graph, base_.view()));
    std::vector<std::int32_t> objects;
    for (std::int32_t i = 0; i < 500; ++i) objects.push_back(i * 40);
    const KnnGraph truth = exact_neighbors(base_.view(), objects.data(), 500, 10, Metric::L2);
    params.init = Init::projection;
    params.device_memory = 0;
    const double one = recall_at(build(base_.view(), params).graph, truth, objects, 10);
    EXPECT_GE(recall_at(graph, truth, objects, 10), one - 0.005);
}

TEST_P(CudaSharded, GoesOnAfterAnInterrupt) {
    SKIP_WITHOUT_GPU();
    const ShardedCase& c = GetParam();
    if (c.shards == 1) GTEST_SKIP() << "one task";
    BuildParams params = gpu_params(32);
    params.init = c.init;
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

}  // namespace
}  // namespace gnnd::test
