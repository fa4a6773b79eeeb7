// SPDX-License-Identifier: MIT
// The memory that operations on a GPU read, write and take: graphs and results on either side, and limits.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gnnd/error.h"
#include "tests/cuda_operations.h"

namespace gnnd {
namespace {

using test::expect_equal;
using test::graph_with_distances;
using test::kCpu;
using test::kGpu;
using test::kOfEdges;
using test::OfEdges;
using test::OnDevice;
using test::random_graph;
using test::RoomOnDevice;

class CudaOperationsMemory : public test::CudaOperations {};
INSTANTIATE_TEST_SUITE_P(All, CudaOperationsMemory, testing::ValuesIn(test::kMetrics), test::metric_name);

TEST_P(CudaOperationsMemory, RunWhereTheGraphLies) {
    const KnnGraph graph = graph_with_distances(GetParam(), 600, 12);
    const OnDevice<std::int32_t> ids(600 * 12, graph.ids());
    const OnDevice<float> distances(600 * 12, graph.distances());
    const CsrGraph expected = symmetric_graph(graph, {0, GraphValues::distance, {}});
    for (const int places : {0, 1, 2, 3}) {  // bits: ids, distances
        KnnGraphView view = graph;
        if (places & 1) view.ids = ids;
        if (places & 2) view.distances = distances;
        expect_equal(expected, symmetric_graph(view, {0, GraphValues::distance, {}, 0, kGpu}));
        if (places & 1) expect_equal(expected, symmetric_graph(view, {0, GraphValues::distance, {}}));
        if (places != 0) {
            EXPECT_THROW(symmetric_graph(view, {0, {}, {}, 0, kCpu}), InvalidArgument);
        }
    }
    EXPECT_EQ(distances.read(), std::vector<float>(graph.distances(), graph.distances() + 600 * 12))
        << "the caller's own is not written to";
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, {Device::Kind::cuda, 4000}}), Unavailable);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, {Device::Kind::cuda, -1}}), InvalidArgument);
}

TEST_P(CudaOperationsMemory, RoomIsWhereTheyCanReach) {
    const KnnGraph graph = random_graph(GetParam(), 2000, 9, 4, true);
    const CsrGraph expected = symmetric_graph(graph);
    // Each array for itself may lie on the host.
    for (const int places : {0, 1, 2, 4}) {
        RoomOnDevice there;
        CsrGraph here;
        const CsrRoom room = [&](std::int64_t n, std::int64_t entries) {
            CsrSpan span = there.room()(n, entries);
            here = {n, Array<std::int64_t>(n + 1), Array<std::int32_t>(entries), Array<float>(entries)};
            if (!(places & 1)) span.indptr = here.indptr.data();
            if (!(places & 2)) span.indices = here.indices.data();
            if (!(places & 4)) span.values = here.values.data();
            return span;
        };
        symmetric_graph(graph, {0, {}, {}, 0, kGpu, room});
        const CsrGraph copied = there.read();
        if (places & 1) here.indptr = copied.indptr;
        if (places & 2) here.indices = copied.indices;
        if (places & 4) here.values = copied.values;
        expect_equal(expected, here);
    }
    RoomOnDevice there;
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, kCpu, there.room()}), InvalidArgument);
    const CsrRoom none = [](std::int64_t, std::int64_t) -> CsrSpan { throw OutOfWorkMemory("no room"); };
    HeapResources heap;
    CountedResources counted(heap);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, kGpu, none}, {}, &counted), OutOfWorkMemory);
    EXPECT_EQ(counted.held(), 0u);
    KnnGraph bad = graph;
    bad.ids()[0] = 0;
    RoomOnDevice unasked;
    EXPECT_THROW(symmetric_graph(bad, {0, {}, {}, 0, kGpu, unasked.room()}), InvalidArgument);
    EXPECT_EQ(unasked.asked, 0);
}

TEST_P(CudaOperationsMemory, TakeWhatTheySayAndGiveItBack) {
    constexpr std::int64_t kObjects = 20000, kEntries = kObjects * 32;
    const KnnGraph graph = random_graph(GetParam(), kObjects, 32, 5, false);
    HeapResources heap;
    CountedResources measured(heap);
    symmetric_graph(graph, {0, {}, {}, 0, kGpu}, {}, &measured);
    EXPECT_EQ(measured.held(), 0u);
    EXPECT_LE(measured.peak(), std::size_t(8 * kEntries + 33 * kEntries + 64 * kObjects));
    CountedResources limited(heap, measured.peak() / 2);
    EXPECT_THROW(symmetric_graph(graph, {0, {}, {}, 0, kGpu}, {}, &limited), Error);
    EXPECT_THROW(mutual_reachability_graph(graph, {0, 5, 1, 0, kGpu}, {}, &limited), Error);
    EXPECT_EQ(limited.held(), 0u);
    const Callbacks stop{{}, [] { return true; }, {}};
    for (const OfEdges operation : kOfEdges)
        EXPECT_THROW(operation(graph, {0, {}, {}, 0, kGpu}, stop, &measured), Interrupted);
    EXPECT_THROW(connected_components(graph, {0, {}, {}, 0, kGpu}, stop, &measured), Interrupted);
    EXPECT_EQ(measured.held(), 0u);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gnnd
