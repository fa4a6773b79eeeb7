// SPDX-License-Identifier: MIT
// merge() on a GPU: the invariants over all kinds of input and every variant, recall against one build, graphs and
// vectors on the device, determinism, memory. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/merge.h"
#include "tests/gpu.h"
#include "tests/hard_sets.h"
#include "tests/io_conditions.h"
#include "tests/merge_cases.h"
#include "tests/paths.h"
#include "tests/scales.h"

namespace gnnd {
namespace {

using test::converging;
using test::gpu_params;
using test::Halves;
using test::has_update;
using test::message_of;
using test::OnDevice;
using test::random_vectors;
using test::Vectors;

TEST(CudaMerge, KeepsTheInvariants) {
    SKIP_WITHOUT_GPU();
    for (const test::MergeCase& c : test::merge_cases())
        for (const bool deterministic : {false, true}) {
            if (!has_update(c.update) || (deterministic && c.update != Update::automatic)) continue;
            SCOPED_TRACE(testing::Message() << c << (deterministic ? ", deterministic" : ""));
            BuildParams params = gpu_params(c.k, c.metric);
            params.deterministic = deterministic;
            // Segments of lists longer than 32 may drop what is near.
            test::expect_good_merge(c, params, c.update != Update::selective || c.k <= 32);
        }
}

TEST(CudaMerge, WithLocksOfLists) {
    SKIP_WITHOUT_GPU();
    SKIP_WITHOUT_UPDATE(Update::selective);
    BuildParams params = gpu_params(40);
    params.locks = Locks::list;
    test::expect_good_merge({900, 1200, 9, Metric::L2, DType::u8, 40, 40, 40, Update::selective}, params);
}

TEST(CudaMerge, OfHalvesIsAsGoodAsOneBuild) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile sample(test::kSampleFile);
    for (const Init init : kInits)
        for (const Update update : {Update::automatic, Update::selective, Update::all}) {
            if (!has_update(update)) continue;
            BuildParams params = converging(gpu_params(32));
            params.init = init;
            params.update = update;
            SCOPED_TRACE(testing::Message() << name_of(init) << ", " << name_of(update));
            test::expect_recall_of_one_build(sample.view(), 7000, params, update == Update::selective ? 0.006 : 0.003);
        }
}

TEST(CudaMerge, OfSetsThatLieApartIsAsGoodAsOneBuild) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile sample(test::kSampleFile);
    test::expect_recall_of_one_build(test::sorted_by_distance(sample.view()), 10000, converging(gpu_params(32)), 0.003);
}

/// The lists that a merge starts from are distances as numbers of float16 are compared: none is infinite.
TEST(CudaMerge, IsAsGoodAtBothEndsOfFloats) {
    SKIP_WITHOUT_GPU();
    test::expect_good_merges_at_scales(converging(gpu_params(20)));
}

/// A merge looks at its lists in between, as a build does.
TEST(CudaMerge, EndsWhenItsRecallIsThere) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile sample(test::kSampleFile);
    BuildParams params = gpu_params(32);
    const Halves halves(sample.view(), 10000, params);
    const BuildResult converged = halves.merge(converging(params));
    params.recall = 0.9f;
    const BuildResult merged = halves.merge(params);
    EXPECT_EQ(merged.stats.stop, StopReason::recall);
    EXPECT_LE(merged.stats.iterations.size(), converged.stats.iterations.size());
    EXPECT_GE(merged.stats.recall.low, 0.9);
    EXPECT_GE(test::Truth(sample.view(), Metric::L2).recall_of(merged.graph), 0.89);
    test::expect_valid_graph(merged.graph, sample.view());
}

TEST(CudaMerge, HoldsTheSmallerSetToTheRecall) {
    SKIP_WITHOUT_GPU();
    for (const test::HardSet& set : test::hard_sets()) {
        SCOPED_TRACE(set.name);
        const Vectors vectors = test::vectors_of(set, 24000, DType::f32);
        test::expect_smaller_set_holds(vectors, gpu_params(10));
    }
}

TEST(CudaMerge, EndsWhenLittleIsLeftToFind) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile sample(test::kSampleFile);
    for (const Init init : kInits)
        for (const std::int64_t n2 : {10000, 1000}) {
            SCOPED_TRACE(testing::Message() << name_of(init) << ", " << n2);
            BuildParams params = converging(gpu_params(32));
            params.init = init;
            test::expect_end_in_time(sample.view(), sample.n() - n2, params);
        }
}

TEST(CudaMerge, DeterministicIsTheSameEveryTime) {
    SKIP_WITHOUT_GPU();
    for (const DType dtype : {DType::u8, DType::f32}) {
        const Vectors vectors = random_vectors(6000, 24, dtype);
        BuildParams params = gpu_params(16);
        params.deterministic = true;
        const Halves halves(vectors, 2500, params);
        const KnnGraph first = halves.merge(params).graph;
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(test::same_graph(halves.merge(params).graph, first));
    }
}

/// Whatever lies where, the result is the same; a graph on the device may hold what is no neighbour.
TEST(CudaMerge, TakesWhatLiesOnTheDevice) {
    SKIP_WITHOUT_GPU();
    for (const DType dtype : {DType::u8, DType::f32}) {
        const Vectors vectors = random_vectors(3000, 32, dtype);
        BuildParams params = gpu_params(20);
        params.deterministic = true;
        const Halves halves(vectors, 1300, params, 30, 20);
        const KnnGraph expected = halves.merge(params).graph;
        const auto& [x1, x2, g1, g2] = halves;
        const auto bytes = [](const VectorView& x) {
            return OnDevice<std::byte>(std::size_t(x.n * x.row_bytes()), static_cast<const std::byte*>(x.data));
        };
        const OnDevice<std::byte> both = bytes(vectors), first = bytes(x1), second = bytes(x2);
        const OnDevice<std::int32_t> ids1(1300 * 30, g1.ids()), ids2(1700 * 20, g2.ids());
        const OnDevice<float> distances1(1300 * 30, g1.distances()), distances2(1700 * 20, g2.distances());
        const KnnGraphView there1{1300, 30, Metric::L2, ids1, distances1},
            there2{1700, 20, Metric::L2, ids2, distances2};
        const auto at = [](const VectorView& x, const void* data) {
            VectorView view = x;
            view.data = data;
            return view;
        };
        const std::pair<VectorView, VectorView> places[] = {
            {x1, x2},
            {at(x1, both.get()), at(x2, both.get() + x1.n * x1.row_bytes())},
            {at(x1, first.get()), at(x2, second.get())},
            {x1, at(x2, second.get())}};
        for (const auto& [here1, here2] : places)
            for (const bool graphs_there : {false, true}) {
                const OnDevice<std::int32_t> ids(3000 * 20);
                const OnDevice<float> distances(3000 * 20);
                KnnGraph result(3000, 20, Metric::L2);
                merge_into(here1, graphs_there ? there1 : g1.view(), here2, graphs_there ? there2 : g2.view(), params,
                           ids, distances);
                std::copy_n(ids.read().data(), 3000 * 20, result.ids());
                std::copy_n(distances.read().data(), 3000 * 20, result.distances());
                EXPECT_TRUE(test::same_graph(result, expected));
            }
    }
}

TEST(CudaMerge, PassesOverWhatIsNoNeighbour) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    const Halves halves(vectors, 1500, gpu_params(10));
    KnnGraph wrong = test::copy_of(halves.g1);
    wrong.ids()[3] = 1500;
    wrong.ids()[15] = 1;  // itself
    wrong.ids()[29] = -1;
    const OnDevice<std::int32_t> ids(1500 * 10, wrong.ids());
    const OnDevice<float> distances(1500 * 10, wrong.distances());
    const auto& [x1, x2, g1, g2] = halves;
    const BuildResult result = merge(x1, {1500, 10, Metric::L2, ids, distances}, x2, g2, gpu_params(10));
    test::expect_valid_graph(result.graph, vectors);
    EXPECT_EQ(message_of<InvalidArgument>([&] { merge(x1, wrong, x2, g2, gpu_params(10)); }),
              "graph.ids[3] = 1500 is outside of [-1, 1500)");
    EXPECT_EQ(message_of<InvalidArgument>([&] {
                  merge(x1, {1500, 10, Metric::L2, ids, g1.distances()}, x2, g2, gpu_params(10));
              }),
              "merge: the first graph's ids and distances lie in different memories");
}

TEST(CudaMerge, RefinesAGraphOnTheDevice) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    const KnnGraph graph = build(vectors, gpu_params(10)).graph;
    const OnDevice<std::int32_t> ids(3000 * 10, graph.ids());
    const BuildResult refined = refine(vectors, {3000, 10, Metric::L2, ids, nullptr}, gpu_params(10));
    test::expect_valid_graph(refined.graph, vectors);
}

TEST(CudaMerge, KeepsTheMemoryCap) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 128, DType::u8);
    BuildParams params = gpu_params(64);
    const Halves halves(vectors, 9000, params);
    HeapResources heap;
    CountedResources whole(heap);
    const auto& [x1, x2, g1, g2] = halves;
    merge(x1, g1, x2, g2, params, {}, &whole);
    params.device_memory = std::int64_t(whole.peak() - 20000 * 8 * 20);
    CountedResources counted(heap);
    test::expect_valid_graph(merge(x1, g1, x2, g2, params, {}, &counted).graph, vectors);
    EXPECT_LE(counted.peak(), std::size_t(params.device_memory));
    EXPECT_EQ(counted.held(), 0u);
    params.device_memory = 1 << 20;
    EXPECT_THROW(merge(x1, g1, x2, g2, params), OutOfDeviceMemory);
}

}  // namespace
}  // namespace gnnd
