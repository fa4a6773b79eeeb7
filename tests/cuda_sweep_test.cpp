// SPDX-License-Identifier: MIT
// Exact graphs on a GPU, against a comparison of all pairs on the host.
#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"
#include "gnnd/resources.h"
#include "tests/all_objects.h"
#include "tests/gpu.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/reference.h"

namespace gnnd::test {
namespace {

struct Case {
    Metric metric;
    DType dtype;
    std::int64_t n, d;
    int k;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << name_of(c.metric) << ", " << name_of(c.dtype) << ", " << c.n << " x " << c.d << ", k=" << c.k;
    }
};

class CudaSweep : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaSweep, FindsWhatComparingAllOnTheHostFinds) {
    const Case& c = GetParam();
    const Vectors vectors = vectors_for(c.metric, c.n, c.d, c.dtype);
    const BuildResult result = build_exact(vectors, gpu_params(c.k, c.metric));
    EXPECT_EQ(result.stats.stop, StopReason::exact);
    expect_exact(vectors, result.graph, all_of(c.n));
}

std::vector<Case> cases() {
    std::vector<Case> cases;
    for (const Metric metric : kMetrics)
        for (const DType dtype : kDTypes) {
            cases.push_back({metric, dtype, 2500, 24, 10});
            cases.push_back({metric, dtype, 3071, 200, 33});
        }
    // Rows that stay in shared memory and rows that do not, one dimension, long lists, a last panel of one row.
    for (const DType dtype : {DType::f32, DType::u8}) {
        cases.push_back({Metric::L2, dtype, 2305, 1, 5});
        cases.push_back({Metric::L2, dtype, 2300, 500, 10});
        cases.push_back({Metric::L2, dtype, 2561, 2000, 10});
        cases.push_back({Metric::InnerProduct, dtype, 4000, 64, 400});
    }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(All, CudaSweep, testing::ValuesIn(cases()));

/// Starts from nothing, in the order of the queries, where some stand twice.
TEST_P(CudaSweep, FindsTheNeighboursOfSomeObjects) {
    const Case& c = GetParam();
    const Vectors vectors = vectors_for(c.metric, c.n, c.d, c.dtype);
    const std::vector<std::int32_t> queries{std::int32_t(c.n - 1), 0, 7, 7, 300};
    const KnnGraph graph = exact_neighbors(vectors, queries.data(), 5, gpu_params(c.k, c.metric));
    expect_valid_graph(graph, vectors, &queries);
    expect_exact(vectors, graph, queries, true);
}

TEST(CudaExactNeighbors, OfManyFromTheHostAndTheDevice) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 60000, kD = 20;
    for (const DType dtype : {DType::f32, DType::u8}) {
        const Vectors vectors = random_vectors(kN, kD, dtype);
        const OnDevice<std::byte> copy(std::size_t(kN * kD) * size_of(dtype),
                                       static_cast<const std::byte*>(vectors.view().data));
        std::vector<std::int32_t> queries = all_of(kN);
        queries.resize(9000);  // more than are compared at once
        BuildParams params = gpu_params(12);
        HeapResources heap;
        CountedResources counted(heap);
        const KnnGraph graph = exact_neighbors(vectors, queries.data(), 9000, params, {}, &counted);
        const std::vector<std::int32_t> first(queries.begin(), queries.begin() + 300);
        expect_exact(vectors, graph, first);
        EXPECT_TRUE(same_graph(graph, exact_neighbors({copy.get(), kN, kD, dtype, 0}, queries.data(), 9000, params)));
        params.device_memory = std::int64_t(counted.peak()) * 3 / 4;
        CountedResources fewer(heap);
        EXPECT_TRUE(same_graph(graph, exact_neighbors(vectors, queries.data(), 9000, params, {}, &fewer)));
        EXPECT_LE(std::int64_t(fewer.peak()), params.device_memory);
        params.device_memory = kN * kD;
        EXPECT_THROW(exact_neighbors(vectors, queries.data(), 9000, params), OutOfDeviceMemory);
    }
}

/// In parts, one after the other, for some of the queries at a time.
TEST(CudaExactNeighbors, OfASetThatTheDeviceDoesNotHold) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 60000, kD = 20;
    std::vector<std::int32_t> queries = all_of(kN);
    queries.resize(1500);
    const std::vector<std::int32_t> first(queries.begin(), queries.begin() + 200);
    for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1})
        for (const DType dtype : {DType::f32, DType::u8}) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype));
            const Vectors vectors = vectors_for(metric, kN, kD, dtype);
            BuildParams params = gpu_params(12, metric);
            params.device_memory = 5 << 20;
            HeapResources heap;
            CountedResources counted(heap);
            const KnnGraph graph = exact_neighbors(vectors, queries.data(), 1500, params, {}, &counted);
            EXPECT_LE(std::int64_t(counted.peak()), params.device_memory);
            expect_valid_graph(graph, vectors, &queries);
            expect_exact(vectors, graph, first);
            const OnDevice<std::byte> copy(std::size_t(kN * kD) * size_of(dtype),
                                           static_cast<const std::byte*>(vectors.view().data));
            EXPECT_TRUE(
                same_graph(graph, exact_neighbors({copy.get(), kN, kD, dtype, 0}, queries.data(), 1500, params)));
        }
}

TEST(CudaExactNeighbors, InPartsNamesBadVectorsByTheirNumberInTheWhole) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = random_vectors(60000, 20, DType::f32);
    vectors.set(45678, 3, NAN);
    BuildParams params = gpu_params(12);
    params.device_memory = 5 << 20;
    for (const std::int32_t query : {0, 45678}) {
        SCOPED_TRACE(query);
        EXPECT_EQ(message_of<InvalidArgument>([&] { exact_neighbors(vectors, &query, 1, params); }),
                  "vector 45678 holds NaN");
    }
    params.recall = 1;
    params.device_memory = 0;
    params.device_memory = std::int64_t(plan_memory(vectors, params).total() * 3 / 5);
    EXPECT_GT(plan_memory(vectors, params).choices.parts, 2);
    EXPECT_EQ(message_of<InvalidArgument>([&] { build(vectors, params); }), "vector 45678 holds NaN");
}

/// Bounds from the first columns say nothing of the others: objects that lie cluster by cluster.
TEST(CudaExactNeighbors, OfSortedClusters) {
    SKIP_WITHOUT_GPU();
    constexpr std::int64_t kN = 30000, kD = 16;
    const Vectors near = random_vectors(kN, kD, DType::f32);
    Vectors vectors(kN, kD, DType::f32);
    std::vector<float> row(kD);
    for (std::int64_t i = 0; i < kN; ++i) {
        copy_as_f32(near.view(), i, 1, row.data());
        for (std::int64_t c = 0; c < kD; ++c) vectors.set(i, c, row[c] + 50.0f * float(i / 3000) * float(c % 3));
    }
    std::vector<std::int32_t> queries;
    for (std::int32_t i = 0; i < kN; i += 100) queries.push_back(i);
    for (const Metric metric : {Metric::L2, Metric::L1}) {
        SCOPED_TRACE(name_of(metric));
        const KnnGraph graph =
            exact_neighbors(vectors, queries.data(), std::int64_t(queries.size()), gpu_params(30, metric));
        expect_valid_graph(graph, vectors, &queries);
        expect_exact(vectors, graph, queries, true);
    }
}

TEST(CudaExactNeighbors, RefuseWhatIsBad) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = random_vectors(4000, 6, DType::f32);
    const std::vector<std::int32_t> queries{0, 4000};
    EXPECT_THROW(exact_neighbors(vectors, queries.data(), 2, gpu_params(5)), InvalidArgument);
    Callbacks callbacks;
    callbacks.interrupt = [] { return true; };
    EXPECT_THROW(exact_neighbors(vectors, queries.data(), 1, gpu_params(5), callbacks), Interrupted);
    vectors.set(17, 3, NAN);
    EXPECT_EQ(message_of<InvalidArgument>([&] { exact_neighbors(vectors, queries.data(), 1, gpu_params(5)); }),
              "vector 17 holds NaN");
}

}  // namespace
}  // namespace gnnd::test
