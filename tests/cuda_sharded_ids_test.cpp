// SPDX-License-Identifier: MIT
// Graphs in shards on a GPU whose lists have ids of 64 bits. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "gnnd/detail/fold.h"
#include "gnnd/error.h"
#include "gnnd/sharded.h"
#include "gnnd/shards/cuda/fold.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/paths.h"
#include "tests/shard_graph.h"
#include "tests/temp_dir.h"

namespace gnnd::test {
namespace {

/// Workers, and whether these have memory for one merge only, so that shards stay on the host.
struct WideIdsCase {
    int workers;
    bool from_host;
};

/// Deterministic builds, so that what is to be the same is so to the bit.
class CudaWideIds : public testing::TestWithParam<WideIdsCase> {
  protected:
    CudaWideIds() { params_.deterministic = true; }
    void limit_memory() {
        if (!GetParam().from_host) return;
        const VectorView pair{nullptr, 2 * (base_.n() / 7 + 1), base_.d(), base_.dtype(), 0};
        const std::size_t graphs = std::size_t(pair.n * params_.k * 8);
        params_.device_memory =
            GetParam().workers * std::int64_t(plan_memory(pair, as_merged(params_)).total() + graphs);
    }
    ShardParams shard_params(int id_bytes, int workers = 1) const {
        ShardParams params;
        params.shards = 7;
        params.workers = workers;
        params.work = dir_.file("work");
        params.id_bytes = id_bytes;
        return params;
    }
    KnnGraph built(const ShardParams& shards) const {
        build_sharded(base_, params_, shards);
        const ShardedGraph graph(shards.work);
        EXPECT_EQ(graph.id_bytes(), shards.id_bytes);
        KnnGraph all = read_all(graph);
        std::filesystem::remove_all(shards.work);
        return all;
    }

    const io::VectorFile base_{kSampleFile};
    const TempDir dir_;
    BuildParams params_ = gpu_params(32);
};

INSTANTIATE_TEST_SUITE_P(Workers, CudaWideIds,
                         testing::Values(WideIdsCase{1, false}, WideIdsCase{2, false}, WideIdsCase{1, true}));

TEST_P(CudaWideIds, GiveTheGraphOfNarrowOnes) {
    SKIP_WITHOUT_GPU();
    limit_memory();
    const KnnGraph wanted = built(shard_params(4));
    expect_valid_graph(wanted, base_.view());
    EXPECT_TRUE(same_graph(built(shard_params(8, GetParam().workers)), wanted));
}

TEST_P(CudaWideIds, GoOnAfterAnInterrupt) {
    SKIP_WITHOUT_GPU();
    limit_memory();
    const KnnGraph wanted = built(shard_params(4));
    ShardParams shards = shard_params(8, GetParam().workers);
    shards.checkpoint_seconds = 0;
    ShardCallbacks callbacks;
    int done = 0;
    callbacks.progress = [&](const ShardProgress& progress) { done = progress.tasks_done; };
    callbacks.interrupt = [&] { return done >= 9; };
    EXPECT_THROW(build_sharded(base_, params_, shards, callbacks), Interrupted);
    shards.resume = true;
    EXPECT_TRUE(same_graph(built(shards), wanted));
}

TEST(CudaWideLists, AreSplitFromABuild) {
    SKIP_WITHOUT_GPU();
    const std::int64_t n = 1001, k = 31, columns = 17, begin = std::int64_t(5) << 32;
    KnnGraph built(n, k, Metric::L2);
    for (std::int64_t i = 0; i < n * k; ++i) {
        built.ids()[i] = i % 13 == 0 ? -1 : std::int32_t(i % n);
        built.distances()[i] = float(i);
    }
    std::vector<std::int64_t> ids(std::size_t(n * k));
    std::vector<float> distances(ids.size());
    detail::put_rows(built, begin, ids.data(), distances.data(), 1);
    const OnDevice<std::int32_t> built_ids(n * k, built.ids());
    const OnDevice<float> built_distances(n * k, built.distances());
    const std::vector<std::int32_t> no_ids(std::size_t(n * columns), 7);
    const std::vector<std::int64_t> no_wide_ids(ids.size(), 7);
    const std::vector<float> none(ids.size(), 7.f);
    const OnDevice<std::int32_t> local_ids(n * columns, no_ids.data());
    const OnDevice<std::int64_t> list_ids(n * k, no_wide_ids.data());
    const OnDevice<float> local_distances(n * columns, none.data()), list_distances(n * k, none.data());
    cuda::split_build({built_ids, built_distances, n, k, Metric::L2}, begin,
                      {local_ids, local_distances, n, columns, Metric::L2},
                      cuda::WideDeviceGraph{list_ids, list_distances, n, k, Metric::L2}, nullptr);
    EXPECT_EQ(list_ids.read(), ids);
    EXPECT_EQ(list_distances.read(), distances);
    const std::vector<std::int32_t> local = local_ids.read();
    for (std::int64_t i = 0; i < n; ++i)
        EXPECT_TRUE(std::equal(built.ids_of(i), built.ids_of(i) + columns, local.begin() + i * columns)) << i;
}

}  // namespace
}  // namespace gnnd::test
