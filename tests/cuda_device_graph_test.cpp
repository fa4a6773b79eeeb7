// SPDX-License-Identifier: MIT
// A graph that stays on a GPU: what is told of an append is what has changed, and it is a graph as any other. Without a
// GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "gnnd/detail/device_graph.h"
#include "gnnd/error.h"
#include "gnnd/search_links.h"
#include "tests/append_cases.h"
#include "tests/gpu.h"

namespace gnnd {
namespace {

using detail::AppendedRows;
using detail::DeviceGraph;
using test::converging;
using test::gpu_params;
using test::random_vectors;
using test::rows_of;
using test::Vectors;

constexpr int kColumns = 20;

class CudaDeviceGraph : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }

    static std::unique_ptr<DeviceGraph> make(std::int64_t d, Metric metric, std::size_t most = 0) {
        return cuda::make_device_graph(0, d, kColumns, metric, most);
    }
    static KnnGraph copy(DeviceGraph& there) {
        KnnGraph graph(there.n(), kColumns, there.graph().metric);
        there.copy_graph(graph.ids(), graph.distances());
        return graph;
    }
    HeapResources resources;
};

bool same_row(const KnnGraph& a, std::int64_t i, const KnnGraph& b, std::int64_t j) {
    return std::equal(a.ids_of(i), a.ids_of(i) + a.k(), b.ids_of(j)) &&
           std::equal(a.distances_of(i), a.distances_of(i) + a.k(), b.distances_of(j));
}

/// Old rows that are told of have changed, into what is told of them, in no more words than tell_row() needs; the
/// others have not. Rows of the added are those of the graph.
void expect_told(const KnnGraph& before, const KnnGraph& after, AppendedRows told) {
    const std::int64_t k = before.k();
    AppendedRows expected;
    for (std::int64_t i = 0; i < before.n(); ++i) {
        if (same_row(before, i, after, i)) continue;
        const auto row = [&](const KnnGraph& graph) {
            return KnnGraphView{1, k, graph.metric(), graph.ids_of(i), graph.distances_of(i)};
        };
        detail::tell_row(expected, std::int32_t(i), row(before), row(after), before.n());
    }
    ASSERT_EQ(told.objects, expected.objects);
    ASSERT_EQ(told.ends, expected.ends);
    KnnGraph grown = before;
    for (std::size_t c = 0; c < told.objects.size(); ++c) {
        const std::int64_t at = told.objects[c];
        told.put_in(c, grown.ids() + at * k, grown.distances() + at * k, k);
        ASSERT_TRUE(same_row(grown, at, after, at)) << "row " << at;
    }
    ASSERT_EQ(told.added.n(), after.n() - before.n());
    for (std::int64_t i = before.n(); i < after.n(); ++i)
        ASSERT_TRUE(same_row(told.added, i - before.n(), after, i)) << "row " << i;
}

TEST_F(CudaDeviceGraph, TellsWhatAnAppendHasChanged) {
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
        SCOPED_TRACE(name_of(metric));
        const Vectors vectors = random_vectors(9000, 12, DType::f32);
        const auto there = make(12, metric);
        const BuildParams params = converging(gpu_params(kColumns, metric));
        there->build(rows_of(vectors, 0, 6000), params, {}, resources);
        KnnGraph before = copy(*there);
        ASSERT_NO_FATAL_FAILURE(test::expect_valid_graph(before, rows_of(vectors, 0, 6000)));
        // With room and without, searched for and merged.
        for (const std::int64_t count : {1, 40, 40, 19, 100, 1800}) {
            SCOPED_TRACE(testing::Message() << count << " to " << before.n());
            const VectorView added = rows_of(vectors, before.n(), count);
            there->append(added, 0, params, {}, resources);
            ASSERT_EQ(there->n(), before.n() + count);
            KnnGraph after = copy(*there);
            ASSERT_NO_FATAL_FAILURE(test::expect_valid_graph(after, rows_of(vectors, 0, after.n())));
            const std::optional<AppendedRows> told = there->changed(before.n(), resources);
            ASSERT_TRUE(told.has_value());
            ASSERT_NO_FATAL_FAILURE(expect_told(before, after, *told));
            EXPECT_FALSE(there->changed(std::int64_t(told->objects.size()) - 1, resources).has_value());
            before = std::move(after);
        }
    }
}

/// Those are the added objects, the changed ones and whom the added are linked to; their rows are those of
/// prune_rows().
TEST_F(CudaDeviceGraph, PrunesWhatAnAppendConcerns) {
    constexpr int kDegree = 12;
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1}) {
        SCOPED_TRACE(name_of(metric));
        const Vectors vectors = random_vectors(4000, 12, DType::f32);
        const auto there = make(12, metric);
        const BuildParams params = converging(gpu_params(kColumns, metric));
        there->build(rows_of(vectors, 0, 3000), params, {}, resources);
        for (const std::int64_t count : {1, 60, 600}) {
            const std::int64_t old = there->n();
            SCOPED_TRACE(testing::Message() << count << " to " << old);
            there->append(rows_of(vectors, old, count), 0, params, {}, resources);
            for (const std::int64_t share : {0, 3, 1}) {  // one in so many of those that have changed
                std::vector<std::int32_t> changed;
                const std::vector<std::int32_t> all = there->changed(old, resources)->objects;
                for (std::size_t i = 0; share != 0 && i < all.size(); i += std::size_t(share))
                    changed.push_back(all[i]);
                const auto prune = [&](const std::vector<std::int32_t>& objects) {
                    std::vector<std::int32_t> links(objects.size() * kDegree);
                    prune_rows(there->vectors(), there->graph(), objects.data(), std::int64_t(objects.size()),
                               {kDegree, {}, 0}, links.data());
                    return links;
                };
                std::vector<std::int32_t> objects(static_cast<std::size_t>(count));
                std::iota(objects.begin(), objects.end(), std::int32_t(old));
                std::set<std::int32_t> others(changed.begin(), changed.end());
                for (const std::int32_t target : prune(objects))
                    if (target >= 0 && target < old) others.insert(target);
                objects.insert(objects.end(), others.begin(), others.end());
                const detail::PrunedObjects pruned = there->prune_around(changed, kDegree, resources);
                ASSERT_EQ(pruned.count, std::int64_t(objects.size()));
                EXPECT_TRUE(std::equal(objects.begin(), objects.end(), pruned.objects()));
                const std::vector<std::int32_t> links = prune(objects);
                EXPECT_TRUE(std::equal(links.begin(), links.end(), pruned.links()));
            }
        }
    }
}

/// Else more than the pool is to keep would be in use in it, and all work memory go back and come again in every call.
TEST_F(CudaDeviceGraph, GrowsOutsideOfThePool) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    const BuildParams params = converging(gpu_params(kColumns));
    const auto there = make(8, Metric::L2);
    there->build(rows_of(vectors, 0, 2000), params, {}, resources);
    there->append(rows_of(vectors, 2000, 100), 0, params, {}, resources);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetMemPool(&pool, 0), cudaSuccess);
    std::uint64_t used = 0;
    ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
    EXPECT_EQ(used, 0U);
    EXPECT_GT(there->bytes(), 0U);
}

TEST_F(CudaDeviceGraph, TakesAGraphFromElsewhere) {
    const Vectors vectors = random_vectors(5000, 8, DType::f32);
    const BuildParams params = gpu_params(kColumns);
    const KnnGraph given = build(rows_of(vectors, 0, 4900), params).graph;
    const auto there = make(8, Metric::L2);
    for (int round = 0; round < 2; ++round) {  // in place of what it holds
        there->load(rows_of(vectors, 0, 4900), given, resources);
        const KnnGraph before = copy(*there);
        for (std::int64_t i = 0; i < given.n(); ++i) ASSERT_TRUE(same_row(given, i, before, i)) << "row " << i;
        const BuildStats stats = there->append(rows_of(vectors, 4900, 100), 0, params, {}, resources);
        EXPECT_GE(stats.recall.high, 0.99);
        EXPECT_EQ(there->n(), 5000);
        ASSERT_NO_FATAL_FAILURE(test::expect_valid_graph(copy(*there), vectors));
    }
}

TEST_F(CudaDeviceGraph, TakesNoMoreThanItMay) {
    const Vectors vectors = random_vectors(5000, 8, DType::f32);
    const BuildParams params = converging(gpu_params(kColumns));
    constexpr std::size_t kOfObject = 8 * 4 + kColumns * 16;
    const auto there = make(8, Metric::L2, 4100 * kOfObject + 7);
    EXPECT_EQ(there->room(), 4100);
    EXPECT_EQ(there->bytes(), 0U);
    there->build(rows_of(vectors, 0, 4000), params, {}, resources);
    there->append(rows_of(vectors, 4000, 100), 0, params, {}, resources);
    EXPECT_EQ(there->bytes(), 4100 * kOfObject);
    EXPECT_THROW(there->append(rows_of(vectors, 4100, 1), 0, params, {}, resources), OutOfDeviceMemory);
}

TEST_F(CudaDeviceGraph, NamesVectorsThatAreNoNumbers) {
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    std::vector<float> bad(5 * 8, 0.5F);
    bad[3 * 8 + 1] = std::numeric_limits<float>::quiet_NaN();
    const auto there = make(8, Metric::L2);
    there->build(vectors, converging(gpu_params(kColumns)), {}, resources);
    try {
        there->append({bad.data(), 5, 8, DType::f32, 0}, 0, converging(gpu_params(kColumns)), {}, resources);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find("vector 3"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace gnnd
