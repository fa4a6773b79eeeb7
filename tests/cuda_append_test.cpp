// SPDX-License-Identifier: MIT
// append() by searching on a GPU: the same cases as on the CPU, true neighbours where searches can meet all, what lies
// on the device, and memory. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "tests/append_cases.h"
#include "tests/converted.h"
#include "tests/gpu.h"
#include "tests/io_conditions.h"
#include "tests/paths.h"

namespace gnnd {
namespace {

using test::converging;
using test::gpu_params;
using test::message_of;
using test::OnDevice;
using test::random_vectors;
using test::Vectors;

/// By the paper's stopping rule, and without measuring: what a search finds stays as it is.
BuildParams searching(int k, Metric metric = Metric::L2) {
    return converging(gpu_params(k, metric));
}

TEST(CudaAppend, SearchKeepsTheInvariants) {
    SKIP_WITHOUT_GPU();
    for (const test::MergeCase& c : test::merge_cases()) {
        SCOPED_TRACE(c);
        test::expect_good_search(c, searching(c.k, c.metric));
    }
    // Every type and metric, rows that are aligned to 16 bytes and not, of one slab and several.
    for (const DType dtype : test::kDTypes)
        for (const Metric metric : test::kMetrics)
            for (const std::int64_t d : {5, 64, 272}) {
                const test::MergeCase c{1500, 300, d, metric, dtype};
                SCOPED_TRACE(c);
                test::expect_good_search(c, searching(c.k, metric));
            }
}

/// The old graph may come from elsewhere, where sums are rounded otherwise; what fills its short rows is in them once.
TEST(CudaAppend, ShortRowsAreFilledWithOthers) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(1000, 12, DType::f32);
    const VectorView old = test::rows_of(vectors, 0, 950), added = test::rows_of(vectors, 950, 50);
    KnnGraph graph = test::graph_of(old, searching(10), 10);
    for (std::int64_t i = 0; i < old.n * 10; ++i)
        graph.distances()[i] = std::nextafter(graph.distances()[i], HUGE_VALF);
    const BuildResult result = append(old, graph, added, searching(40), {}, nullptr, AppendMethod::search);
    test::expect_valid_graph(result.graph, vectors);
}

TEST(CudaAppend, SearchIsAsGoodAsOneBuild) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile sample(test::kSampleFile);
    for (const std::int64_t count : {19, 200, 950}) {
        SCOPED_TRACE(count);
        test::expect_search_as_good_as_one_build(sample.view(), count, searching(32));
    }
}

/// With 64 columns and a beam of as many nearly all of so few objects are met.
TEST(CudaAppend, SearchFindsTheTrueNeighboursOfSmallSets) {
    SKIP_WITHOUT_GPU();
    for (const Metric metric : {Metric::L2, Metric::Cosine, Metric::L1}) {
        const Vectors vectors = test::vectors_for(metric, 1300, 16, DType::f32);
        const test::Truth truth(vectors, metric, 1200, 100);
        const BuildResult result = test::search_last(vectors, 100, gpu_params(64, metric));
        EXPECT_GE(truth.recall_of(result.graph), 0.999) << name_of(metric);
    }
}

TEST(CudaAppend, SearchFindsANewCluster) {
    SKIP_WITHOUT_GPU();
    for (const std::int64_t count : {20, 100, 1500})
        test::expect_search_as_good_as_one_build(test::with_far_cluster(6000, count, 12), count, searching(16));
}

TEST(CudaAppend, SearchIsTheSameEveryTime) {
    SKIP_WITHOUT_GPU();
    for (const DType dtype : {DType::u8, DType::f32}) {
        const Vectors vectors = random_vectors(6000, 24, dtype);
        BuildParams params = searching(16);
        params.deterministic = true;  // the old graph
        const KnnGraph first = test::search_last(vectors, 1000, params).graph;
        for (int i = 0; i < 3; ++i)
            EXPECT_TRUE(test::same_graph(test::search_last(vectors, 1000, params).graph, first));
    }
}

TEST(CudaAppend, TakesWhatLiesOnTheDevice) {
    SKIP_WITHOUT_GPU();
    for (const DType dtype : {DType::u8, DType::f32}) {
        const Vectors vectors = random_vectors(3000, 32, dtype);
        const VectorView old = test::rows_of(vectors, 0, 2500), added = test::rows_of(vectors, 2500, 500);
        for (const int k : {12, 20, 24}) {
            const KnnGraph graph = build(old, searching(20)).graph;
            const KnnGraph expected = append(old, graph, added, searching(k), {}, nullptr, AppendMethod::search).graph;
            const OnDevice<std::byte> x1(std::size_t(old.n * old.row_bytes()), static_cast<const std::byte*>(old.data));
            const OnDevice<std::byte> x2(std::size_t(added.n * added.row_bytes()),
                                         static_cast<const std::byte*>(added.data));
            const OnDevice<std::int32_t> graph_ids(2500 * 20, graph.ids());
            const OnDevice<float> graph_distances(2500 * 20, graph.distances());
            const OnDevice<std::int32_t> ids(3000 * k);
            const OnDevice<float> distances(3000 * k);
            const KnnGraphView there{2500, 20, Metric::L2, graph_ids, graph_distances};
            append_into({x1, 2500, 32, dtype, 0}, there, {x2, 500, 32, dtype, 0}, searching(k), ids, distances, {},
                        nullptr, AppendMethod::search);
            KnnGraph result(3000, k, Metric::L2);
            std::copy_n(ids.read().data(), 3000 * k, result.ids());
            std::copy_n(distances.read().data(), 3000 * k, result.distances());
            EXPECT_TRUE(test::same_graph(result, expected)) << k;
        }
    }
}

struct Place {
    bool device;
    int padding;  ///< components after each row
    friend std::ostream& operator<<(std::ostream& out, const Place& place) {
        return out << (place.device ? "device" : "host") << " + " << place.padding;
    }
};

/// A copy of rows that lies there.
class Placed {
  public:
    Placed(const VectorView& rows, const Place& place)
        : stride_(std::size_t(rows.row_bytes()) + std::size_t(place.padding) * size_of(rows.dtype)),
          here_(spread(rows, stride_)),
          there_(here_),
          view_{place.device ? there_.get() : here_.data(), rows.n, rows.d, rows.dtype, std::int64_t(stride_)} {}
    operator const VectorView&() const { return view_; }

  private:
    static std::vector<std::byte> spread(const VectorView& rows, std::size_t stride) {
        std::vector<std::byte> bytes(std::size_t(rows.n) * stride, std::byte{0xa5});
        for (std::int64_t i = 0; i < rows.n; ++i)
            std::copy_n(rows.row(i), std::size_t(rows.row_bytes()), bytes.data() + std::size_t(i) * stride);
        return bytes;
    }

    std::size_t stride_;
    std::vector<std::byte> here_;
    OnDevice<std::byte> there_;
    VectorView view_;
};

/// Rows of both sets on the device or not, tight or with other strides, aligned for wide loads or not. Components are
/// whole numbers, so that distances are the same in whatever order they are summed up.
TEST(CudaAppend, SetsMayLieDifferently) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kOld = 2500, kAdded = 500, kDim = 32;
    const Vectors bytes = random_vectors(kOld + kAdded, kDim, DType::u8);
    const Vectors floats = test::converted(bytes, DType::f32);
    const Place places[] = {{true, 0}, {true, 16}, {true, 3}, {false, 0}, {false, 5}};
    for (const Vectors* vectors : {&bytes, &floats}) {
        const VectorView old = test::rows_of(*vectors, 0, kOld), added = test::rows_of(*vectors, kOld, kAdded);
        const KnnGraph graph = build(old, searching(20)).graph;
        const KnnGraph expected = append(old, graph, added, searching(20), {}, nullptr, AppendMethod::search).graph;
        for (const Place& first : places)
            for (const Place& second : places) {
                SCOPED_TRACE(testing::Message() << name_of(old.dtype) << ": " << first << ", " << second);
                EXPECT_TRUE(test::same_graph(append(Placed(old, first), graph, Placed(added, second), searching(20), {},
                                                    nullptr, AppendMethod::search)
                                                 .graph,
                                             expected));
            }
    }
}

TEST(CudaAppend, PassesOverWhatIsNoNeighbour) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 8, DType::f32);
    const VectorView old = test::rows_of(vectors, 0, 2000), added = test::rows_of(vectors, 2000, 1000);
    KnnGraph wrong = build(old, searching(10)).graph;
    wrong.ids()[15] = 1;  // itself
    wrong.ids()[29] = -1;
    for (const int k : {10, 8})
        test::expect_valid_graph(append(old, wrong, added, searching(k), {}, nullptr, AppendMethod::search).graph,
                                 vectors);
}

TEST(CudaAppend, SearchEndsWhenAskedAndRefusesWhatIsBad) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = random_vectors(4000, 6, DType::f32);
    const VectorView old = test::rows_of(vectors, 0, 3000), added = test::rows_of(vectors, 3000, 1000);
    const KnnGraph graph = build(old, searching(8)).graph;
    const auto search = [&](const Callbacks& callbacks) {
        append(old, graph, added, searching(8), callbacks, nullptr, AppendMethod::search);
    };
    Callbacks callbacks;
    callbacks.interrupt = [] { return true; };
    EXPECT_THROW(search(callbacks), Interrupted);
    vectors.set(3017, 3, NAN);
    EXPECT_EQ(message_of<InvalidArgument>([&] { search({}); }), "append: of the added vectors: vector 17 holds NaN");
}

TEST(CudaAppend, SearchKeepsTheMemoryCap) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 128, DType::u8);
    const VectorView old = test::rows_of(vectors, 0, 14000), added = test::rows_of(vectors, 14000, 6000);
    BuildParams params = searching(32);
    const KnnGraph graph = build(old, params).graph;
    HeapResources heap;
    const auto peak = [&] {
        CountedResources counted(heap);
        test::expect_valid_graph(append(old, graph, added, params, {}, &counted, AppendMethod::search).graph, vectors);
        EXPECT_EQ(counted.held(), 0u);
        return counted.peak();
    };
    params.device_memory = std::int64_t(peak() - 3000 * 128 * 12);
    EXPECT_LE(peak(), std::size_t(params.device_memory));
    params.device_memory = 1 << 20;
    EXPECT_THROW(append(old, graph, added, params, {}, nullptr, AppendMethod::search), OutOfDeviceMemory);
}

TEST(CudaAppend, ChainsHoldTheRecall) {
    SKIP_WITHOUT_GPU();
    test::expect_chain_of_appends_holds(random_vectors(11000, 16, DType::f32), 6000, 100, gpu_params(10));
    const io::VectorFile sample(test::kSampleFile);
    test::expect_chain_of_appends_holds(sample.view(), 15000, 100, gpu_params(32));
}

TEST(CudaAppend, RaisesTheRecallOfABadGraph) {
    SKIP_WITHOUT_GPU();
    test::expect_appends_to_a_bad_graph_hold(gpu_params(32));
}

TEST(CudaAppend, HoldsTheAddedObjectsAlone) {
    SKIP_WITHOUT_GPU();
    test::expect_added_are_held_to_the_recall(gpu_params(32));
}

TEST(CudaAppend, HoldsWhatWasAddedUnmeasured) {
    SKIP_WITHOUT_GPU();
    test::expect_unmeasured_are_held_to_the_recall(gpu_params(32));
}

TEST(CudaAppend, LosesLittleUnmeasured) {
    SKIP_WITHOUT_GPU();
    const io::VectorFile sample(test::kSampleFile);
    test::expect_unmeasured_appends_lose_little(test::rows_of(sample.view(), 0, 12000), gpu_params(32));
}

TEST(CudaAppend, OfRecallOneIsExact) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(4000, 24, DType::f32);
    BuildParams params = gpu_params(10);
    params.recall = 1;
    const BuildResult result = test::search_last(vectors, 100, params);
    EXPECT_EQ(result.stats.stop, StopReason::exact);
    EXPECT_EQ(test::Truth(vectors, Metric::L2).recall_of(result.graph), 1);
    test::expect_valid_graph(result.graph, vectors);
}

/// One behind the other on the device, apart, with strides, or on the host: measured are the same objects.
TEST(CudaAppend, MeasuresWhereverSetsLie) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kOld = 2500, kAdded = 60;
    for (const DType dtype : {DType::u8, DType::f32}) {
        const Vectors vectors = test::vectors_for(Metric::L2, kOld + kAdded, 32, dtype);
        const VectorView old = test::rows_of(vectors, 0, kOld), added = test::rows_of(vectors, kOld, kAdded);
        BuildParams params = gpu_params(20);
        params.recall = 0.5f;  // any search has that
        const KnnGraph graph = build(old, params).graph;
        const auto append_to = [&](const VectorView& first, const VectorView& second) {
            return append(first, graph, second, params, {}, nullptr, AppendMethod::search);
        };
        const BuildResult expected = append_to(old, added);
        EXPECT_EQ(expected.stats.stop, StopReason::searched);
        EXPECT_EQ(expected.stats.recall_added.objects, kAdded);
        EXPECT_GT(expected.stats.recall.value, 0.5);
        const auto expect_same = [&](const BuildResult& result) {
            EXPECT_TRUE(test::same_graph(result.graph, expected.graph));
            EXPECT_EQ(result.stats.recall.value, expected.stats.recall.value);
            EXPECT_EQ(result.stats.recall_added.value, expected.stats.recall_added.value);
        };
        const Placed all(vectors, {true, 0});
        const VectorView there = all;
        expect_same(append_to(test::rows_of(there, 0, kOld), test::rows_of(there, kOld, kAdded)));
        const Place places[] = {{true, 0}, {true, 3}, {false, 5}};
        for (const Place& first : places)
            for (const Place& second : places) {
                SCOPED_TRACE(testing::Message() << name_of(dtype) << ": " << first << ", " << second);
                expect_same(append_to(Placed(old, first), Placed(added, second)));
            }
    }
}

}  // namespace
}  // namespace gnnd
