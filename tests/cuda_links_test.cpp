// SPDX-License-Identifier: MIT
// search_links() on a GPU against the CPU's. Without a GPU all of it is skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "gnnd/error.h"
#include "tests/gpu.h"
#include "tests/links.h"

namespace gnnd {
namespace {

using test::exact_graph;
using test::kCpu;
using test::links_of;
using test::OnDevice;
using test::random_vectors;
using test::Vectors;
using test::vectors_for;

constexpr Device kGpu{Device::Kind::cuda, 0};

class CudaLinksTest : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

/// The share of rows that are the same.
double agreement(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b, int degree) {
    const std::size_t rows = a.size() / degree;
    std::size_t same = 0;
    for (std::size_t i = 0; i < rows; ++i) same += std::equal(&a[i * degree], &a[i * degree] + degree, &b[i * degree]);
    return double(same) / double(rows);
}

TEST_F(CudaLinksTest, AreThoseOfTheCpuWhereDistancesAreExact) {
    for (const DType dtype : {DType::u8, DType::i8})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct})
            for (const int d : {3, 128, 200, 960}) {
                if (d == 960 && metric == Metric::InnerProduct) continue;  // beyond what float32 counts
                const Vectors vectors = random_vectors(1500, d, dtype);
                for (const int k : {1, 10, 33, 64, 200}) {
                    const KnnGraph graph = exact_graph(vectors, metric, k);
                    for (const int degree : {1, 16, 33, 64, 100, 128})
                        for (const bool fill : {true, false})
                            ASSERT_EQ(links_of(vectors, graph, {degree, kGpu, 0, fill}),
                                      links_of(vectors, graph, {degree, kCpu, 0, fill}))
                                << name_of(metric) << ' ' << name_of(dtype) << ", d " << d << ", k " << k << ", degree "
                                << degree << ", fill " << fill;
                }
            }
}

TEST_F(CudaLinksTest, PrunesSomeRowsAsTheCpu) {
    constexpr int kDegree = 24;
    const Vectors vectors = random_vectors(1500, 40, DType::u8);
    const VectorView host = vectors;
    const OnDevice<std::byte> bytes(std::size_t(host.n * host.row_bytes()), static_cast<const std::byte*>(host.data));
    VectorView there = host;
    there.data = bytes.get();
    for (const int k : {1, 33, 64, 100}) {
        const KnnGraph graph = exact_graph(vectors, Metric::L2, k);
        const OnDevice<std::int32_t> ids(std::size_t(graph.n() * k), graph.ids());
        KnnGraphView graph_there = graph;
        graph_there.ids = ids.get();
        for (const std::vector<std::int32_t>& objects :
             {std::vector<std::int32_t>{7}, {1499, 3, 0, 3, 1200}, std::vector<std::int32_t>(700, 9)}) {
            const auto count = std::int64_t(objects.size());
            std::vector<std::int32_t> expected(objects.size() * kDegree), links(expected.size(), -7);
            prune_rows(host, graph, objects.data(), count, {kDegree, kCpu}, expected.data());
            for (const KnnGraphView& given : {KnnGraphView(graph), graph_there}) {
                prune_rows(there, given, objects.data(), count, {kDegree, kCpu}, links.data());
                EXPECT_EQ(links, expected) << "k " << k << ", " << count << " objects";
            }
        }
        std::vector<std::int32_t> links(129);
        const std::int32_t object = 1500;
        EXPECT_THROW(prune_rows(there, graph, &object, 1, {kDegree, kGpu}, links.data()), InvalidArgument);
        EXPECT_THROW(prune_rows(there, graph, links.data(), 1, {129, kGpu}, links.data()), InvalidArgument);
        EXPECT_THROW(prune_rows(host, graph_there, links.data(), 1, {kDegree, kGpu}, links.data()), InvalidArgument);
        EXPECT_THROW(prune_rows(there, graph, ids.get(), 1, {kDegree, kGpu}, links.data()), InvalidArgument);
    }
}

TEST_F(CudaLinksTest, AreThoseOfTheCpuForTinySets) {
    for (const std::int64_t n : {2, 3, 20, 70}) {
        const Vectors vectors = random_vectors(n, 5, DType::u8);
        for (const int k : {1, 30, 300}) {
            const KnnGraph graph = exact_graph(vectors, Metric::L2, k);
            for (const int degree : {1, 32, 128})
                ASSERT_EQ(links_of(vectors, graph, {degree, kGpu}), links_of(vectors, graph, {degree, kCpu}))
                    << n << ' ' << k << ' ' << degree;
        }
    }
}

/// A hub that everybody links first has far more edges than room.
TEST_F(CudaLinksTest, AreThoseOfTheCpuWhereOneIsEverybodysNearest) {
    Vectors vectors(3000, 16, DType::u8);
    for (int i = 0; i < 3000; ++i)
        for (int c = 0; c < 16; ++c) vectors.set(i, c, i == 1234 ? 128 : c == i % 16 ? float(i / 16 % 2 * 255) : 128);
    const KnnGraph graph = exact_graph(vectors, Metric::L2, 64);
    for (const int degree : {8, 32, 64, 128})
        ASSERT_EQ(links_of(vectors, graph, {degree, kGpu}), links_of(vectors, graph, {degree, kCpu})) << degree;
}

TEST_F(CudaLinksTest, AreNearlyThoseOfTheCpuElsewhere) {
    for (const Metric metric : test::kMetrics)
        for (const int d : {20, 200}) {
            const Vectors vectors = vectors_for(metric, 2000, d, DType::f32);
            const KnnGraph graph = exact_graph(vectors, metric, 32);
            // Under linf a distance is one component's, so that rounding does not average out over many.
            const double enough = metric == Metric::Linf ? 0.95 : 0.97;
            for (const int degree : {16, 32})
                EXPECT_GE(agreement(links_of(vectors, graph, {degree, kGpu}), links_of(vectors, graph, {degree, kCpu}),
                                    degree),
                          enough)
                    << name_of(metric) << ", d " << d << ", degree " << degree;
        }
}

/// However the cells round, equal vectors are equally far from everything.
TEST_F(CudaLinksTest, OfEqualVectorsOneIsEnough) {
    const int n = 1000, copies = 10, degree = 32;
    Vectors vectors = random_vectors(n, 100, DType::f32);
    std::vector<float> row(100);
    for (int i = 0; i < n; ++i) {
        copy_as_f32(vectors, i / copies * copies, 1, row.data());
        for (int c = 0; c < 100; ++c) vectors.set(i, c, row[c]);
    }
    const KnnGraph graph = exact_graph(vectors, Metric::L2, 64);
    // Each object chooses one equal to it, which blocks all others: the same as on the CPU.
    EXPECT_EQ(links_of(vectors, graph, {degree, kGpu}), links_of(vectors, graph, {degree, kCpu}));
}

TEST_F(CudaLinksTest, AreTheSameRunAfterRun) {
    for (const DType dtype : {DType::u8, DType::f32}) {
        const Vectors vectors = random_vectors(5000, 40, dtype);
        const KnnGraph graph = exact_graph(vectors, Metric::L2, 48);
        const auto first = links_of(vectors, graph, {32, kGpu});
        for (int i = 0; i < 3; ++i) EXPECT_EQ(links_of(vectors, graph, {32, kGpu}), first);
    }
}

TEST_F(CudaLinksTest, TakeAndLeaveDeviceMemory) {
    const std::int64_t n = 2000;
    const int k = 32, degree = 24;
    for (const DType dtype : {DType::u8, DType::f32})
        for (const std::int64_t d : {100, 128}) {
            const Vectors vectors = random_vectors(n, d, dtype);
            const VectorView host = vectors;
            const KnnGraph graph = exact_graph(vectors, Metric::L2, k);
            const auto expected = links_of(vectors, graph, {degree, kGpu});
            const OnDevice<std::byte> rows(n * host.row_bytes(), static_cast<const std::byte*>(host.data));
            const OnDevice<std::int32_t> ids(n * k, graph.ids()), links(n * degree);
            VectorView view = host;
            KnnGraphView here = graph;
            for (const int places : {1, 2, 4, 7}) {  // bits: vectors, graph, links
                view.data = places & 1 ? rows.get() : host.data;
                here.ids = places & 2 ? ids.get() : graph.ids();
                std::vector<std::int32_t> got(n * degree);
                search_links(view, here, {degree, kGpu}, places & 4 ? links.get() : got.data());
                EXPECT_EQ(places & 4 ? links.read() : got, expected) << places;
            }
            EXPECT_THROW(links_of(view, graph, {degree, kCpu}), InvalidArgument);
            EXPECT_THROW(links_of(vectors, here, {degree, kCpu}), InvalidArgument);
        }
}

TEST_F(CudaLinksTest, PassOverIdsThatNobodyHas) {
    const std::int64_t n = 1000;
    const int k = 40, degree = 32;
    const Vectors vectors = random_vectors(n, 30, DType::u8);
    KnnGraph graph = exact_graph(vectors, Metric::L2, k), wild = graph;
    constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min(),
                           kMost = std::numeric_limits<std::int32_t>::max();
    const std::int32_t strangers[] = {std::int32_t(n), kMost, kMost - 1, kLeast, -2};
    for (std::int64_t e = 0; e < n * k; ++e)
        if (e % 7 == 2) {
            graph.ids()[e] = -1;
            wild.ids()[e] = strangers[e % 5];
        } else if (e % 7 == 4) {
            graph.ids()[e] = wild.ids()[e] = std::int32_t(e / k);
        }
    const OnDevice<std::int32_t> ids(n * k, wild.ids());
    KnnGraphView here = graph;
    here.ids = ids.get();
    EXPECT_EQ(links_of(vectors, here, {degree, kGpu}), links_of(vectors, graph, {degree, kCpu}));
    EXPECT_THROW(links_of(vectors, wild, {degree, kGpu}), InvalidArgument);
}

TEST_F(CudaLinksTest, RefuseWhatAGpuDoesNotDo) {
    const Vectors vectors = random_vectors(500, 8, DType::f32);
    const KnnGraph graph = exact_graph(vectors, Metric::L2, 10);
    EXPECT_THROW(links_of(vectors, graph, {129, kGpu}), InvalidArgument);
    EXPECT_THROW(links_of(vectors, graph, {16, {Device::Kind::cuda, 4000}}), Unavailable);
    EXPECT_EQ(links_of(vectors, graph, {129, {}}), links_of(vectors, graph, {129, kCpu}));

    std::vector<std::int32_t> links(500 * 16);
    HeapResources heap;
    CountedResources measured(heap);
    search_links(vectors, graph, {16, kGpu}, links.data(), {}, &measured);
    EXPECT_GT(measured.peak(), 0u);
    EXPECT_EQ(measured.held(), 0u);
    CountedResources limited(heap, measured.peak() / 2);
    EXPECT_THROW(search_links(vectors, graph, {16, kGpu}, links.data(), {}, &limited), Error);
    Callbacks callbacks;
    callbacks.interrupt = [] { return true; };
    EXPECT_THROW(search_links(vectors, graph, {16, kGpu}, links.data(), callbacks), Interrupted);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gnnd
