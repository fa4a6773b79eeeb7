// SPDX-License-Identifier: MIT
// Floats that are small integers are compared as bytes on the CPU: the same graphs and links, and nothing else is taken
// for such.
#include "gnnd/cpu/pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/append_rows.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"
#include "gnnd/names.h"
#include "tests/converted.h"
#include "tests/cpu.h"
#include "tests/invariants.h"
#include "tests/io_conditions.h"
#include "tests/links.h"
#include "tests/merge_cases.h"

namespace gnnd {
namespace {

using cpu::PackedRows;
using test::converted;
using test::kCpu;
using test::name_of_both;
using test::random_vectors;
using test::rows_of;
using test::same_graph;
using test::Vectors;

constexpr std::int64_t kRows = 700, kDim = 13;
const cpu::Team kTeam{2, nullptr};

std::optional<PackedRows> packed(const VectorView& vectors, Metric metric = Metric::L2) {
    static HeapResources heap;  // for as long as there are rows
    return PackedRows::of({&vectors, 1}, metric, kTeam, heap);
}

class PackTest : public testing::TestWithParam<std::tuple<DType, DType>> {};

TEST_P(PackTest, IntegersOfEitherRange) {
    const auto [dtype, bytes] = GetParam();
    const Vectors integers = random_vectors(kRows, kDim, bytes);
    const Vectors floats = converted(integers, dtype);
    const auto rows = packed(floats);
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->view().dtype, bytes);
    EXPECT_EQ(std::memcmp(rows->view().data, integers.view().data, kRows * kDim), 0);
    // In two sets, of which the second lies elsewhere, and with a gap between rows.
    HeapResources heap;
    const VectorView whole = floats;
    VectorView sets[2] = {whole, whole};
    sets[0].n = 300;
    sets[1] = {whole.row(300), 200, kDim, dtype, 2 * whole.row_bytes()};
    const auto both = PackedRows::of(sets, Metric::InnerProduct, kTeam, heap);
    ASSERT_TRUE(both);
    EXPECT_EQ(both->view().n, 500);
    for (std::int64_t i = 0; i < 500; ++i)
        EXPECT_EQ(std::memcmp(both->view().row(i), integers.view().row(i < 300 ? i : 300 + 2 * (i - 300)), kDim), 0);
}

INSTANTIATE_TEST_SUITE_P(All, PackTest,
                         testing::Combine(testing::Values(DType::f32, DType::f16, DType::bf16),
                                          testing::Values(DType::u8, DType::i8)),
                         name_of_both);

TEST(Pack, NothingElse) {
    const Vectors integers = converted(random_vectors(kRows, kDim, DType::u8), DType::f32);
    for (const float other : {0.5F, 256.F, -129.F, -1.F, 1e30F, -1e30F, std::numeric_limits<float>::denorm_min(),
                              std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        SCOPED_TRACE(other);
        Vectors vectors = integers;
        vectors.set(0, 0, 255);
        vectors.set(kRows - 1, kDim - 1, other);
        EXPECT_FALSE(packed(vectors));
    }
    EXPECT_FALSE(packed(random_vectors(kRows, kDim, DType::u8))) << "bytes are";
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare}) EXPECT_FALSE(packed(integers, metric));
    EXPECT_FALSE(packed({nullptr, 0, kDim, DType::f32, 0}));
    HeapResources heap;
    CountedResources few(heap, kRows * kDim - 1);
    const VectorView view = integers;
    EXPECT_FALSE(PackedRows::of({&view, 1}, Metric::L2, kTeam, few));
    EXPECT_EQ(few.held(), 0u);
    Vectors zeros = integers;
    zeros.set(3, 3, -0.F);
    EXPECT_TRUE(packed(zeros));
    CountedResources enough(heap, kRows * kDim);
    EXPECT_TRUE(PackedRows::of({&view, 1}, Metric::L2, kTeam, enough));
}

TEST(Pack, NothingWhoseSumsFloatsWouldRound) {
    const auto of = [](std::int64_t d, float least, float most) {
        Vectors vectors(3, d, DType::f32);
        vectors.set(0, 0, least);
        vectors.set(1, d - 1, most);
        return packed(vectors).has_value();
    };
    EXPECT_TRUE(of(258, 0, 255));
    EXPECT_FALSE(of(259, 0, 255));
    EXPECT_TRUE(of(258, -128, 127));
    EXPECT_FALSE(of(259, -128, 127));
    EXPECT_TRUE(of(16384, 0, 32));
    EXPECT_FALSE(of(16385, 0, 32));
}

/// What a limit has room for without packing is built.
TEST(Pack, TakesNoMemoryThatABuildNeeds) {
    const Vectors integers = converted(random_vectors(4000, 64, DType::u8), DType::f32);
    BuildParams params = test::cpu_params(10);
    params.recall = 0;
    HeapResources heap;
    const BuildResult free = build(integers, params, {}, &heap);
    constexpr std::int64_t kPacked = 4000 * 64;
    CountedResources limited(heap, std::size_t(free.stats.peak_work_bytes - kPacked));
    const BuildResult result = build(integers, params, {}, &limited);
    EXPECT_TRUE(same_graph(result.graph, free.graph));
    EXPECT_EQ(result.stats.iterations.size(), free.stats.iterations.size());
    EXPECT_EQ(limited.held(), 0u);
    CountedResources less(heap, std::size_t(free.stats.peak_work_bytes - kPacked - 1));
    EXPECT_THROW(build(integers, params, {}, &less), OutOfWorkMemory);
}

/// Exact neighbours that a limit has room for without packing are found.
TEST(Pack, TakesNoMemoryThatComparingNeeds) {
    const Vectors integers = converted(random_vectors(4000, 64, DType::u8), DType::f32);
    std::vector<std::int32_t> queries(600);
    std::iota(queries.begin(), queries.end(), 0);
    HeapResources heap;
    CountedResources few(heap), free(heap);
    const auto nearest = [&](std::int64_t count, Resources& resources) {
        return exact_neighbors(integers, queries.data(), count, test::cpu_params(10), {}, &resources);
    };
    nearest(20, few);
    const KnnGraph graph = nearest(600, free);
    EXPECT_GT(free.peak(), few.peak() + 3000 * 64);
    CountedResources limited(heap, few.peak());
    EXPECT_TRUE(same_graph(nearest(600, limited), graph));
    EXPECT_EQ(limited.held(), 0u);
}

class PackedBuildTest : public testing::TestWithParam<std::tuple<Metric, DType>> {};

TEST_P(PackedBuildTest, TheGraphIsThatOfTheBytes) {
    const auto [metric, bytes] = GetParam();
    const Vectors integers = test::vectors_for(metric, 2000, 40, bytes);
    const Vectors floats = converted(integers, DType::f32);
    BuildParams params = test::cpu_params(16, metric);
    params.recall = 0;
    const BuildResult of_floats = build(floats, params), of_bytes = build(integers, params);
    EXPECT_EQ(of_floats.stats.stop, StopReason::converged);
    EXPECT_TRUE(same_graph(of_floats.graph, of_bytes.graph));
    EXPECT_EQ(of_floats.stats.peak_work_bytes, of_bytes.stats.peak_work_bytes + 2000 * 40);
    EXPECT_LE(std::size_t(of_floats.stats.peak_work_bytes), plan_memory(floats, params).work);

    std::vector<std::int32_t> queries(600);
    std::iota(queries.begin(), queries.end(), 1400);
    for (const std::int64_t count : {5, 600})  // of few, floats themselves are compared
        EXPECT_TRUE(same_graph(exact_neighbors(floats, queries.data(), count, params),
                               exact_neighbors(integers, queries.data(), count, params)));

    const KnnGraph exact = build_exact(floats, params).graph;
    EXPECT_TRUE(same_graph(exact, build_exact(integers, params).graph));
    const LinkParams links = {.degree = 8, .device = kCpu, .threads = 2};
    EXPECT_EQ(test::links_of(floats, exact, links), test::links_of(integers, exact, links));
    for (const std::int64_t count : {5, 600}) {
        std::vector<std::int32_t> pruned(count * 8), of_bytes(count * 8);
        prune_rows(floats, exact, queries.data(), count, links, pruned.data());
        prune_rows(integers, exact, queries.data(), count, links, of_bytes.data());
        EXPECT_EQ(pruned, of_bytes) << count;
    }

    // Halves that do not adjoin, and vectors that are inserted.
    const Vectors first = converted({integers.view().data, 1100, 40, bytes, 0}, DType::f32),
                  second = converted({integers.view().row(1100), 900, 40, bytes, 0}, DType::f32);
    const KnnGraph graph1 = build(first, params).graph, graph2 = build(second, params).graph;
    const VectorView bytes1 = {integers.view().data, 1100, 40, bytes, 0},
                     bytes2 = {integers.view().row(1100), 900, 40, bytes, 0};
    const BuildResult merged = merge(first, graph1, second, graph2, params);
    EXPECT_TRUE(same_graph(merged.graph, merge(bytes1, graph1, bytes2, graph2, params).graph));
    EXPECT_TRUE(same_graph(append(first, graph1, second, params).graph, append(bytes1, graph1, bytes2, params).graph));
}

INSTANTIATE_TEST_SUITE_P(All, PackedBuildTest,
                         testing::Combine(testing::Values(Metric::L2, Metric::InnerProduct, Metric::Cosine),
                                          testing::Values(DType::u8, DType::i8)),
                         name_of_both);

/// Whatever is inserted, in one array with the rest or in one of its own: few are compared as floats, many as bytes.
TEST(Pack, InsertionsAreThoseOfTheBytes) {
    constexpr std::int64_t kOld = 3000, kMost = 900, kWidth = 40;
    const Vectors integers = random_vectors(kOld + kMost, kWidth, DType::u8), floats = converted(integers, DType::f32);
    const Vectors apart = converted({integers.view().row(kOld), kMost, kWidth, DType::u8, 0}, DType::f32);
    const VectorView old = rows_of(floats, 0, kOld), old_bytes = rows_of(integers, 0, kOld);
    BuildParams params = test::cpu_params(16);
    params.recall = 0;
    const KnnGraph graph = build(old_bytes, params).graph;
    const auto appended = [&](const VectorView& vectors, const VectorView& added) {
        return append(vectors, graph, added, params, {}, nullptr, AppendMethod::search);
    };
    for (const std::int64_t count : {std::int64_t(5), kMost}) {
        const BuildResult expected = appended(old_bytes, rows_of(integers, kOld, count)),
                          adjoining = appended(old, rows_of(floats, kOld, count)),
                          copied = appended(old, rows_of(apart, 0, count));
        EXPECT_TRUE(same_graph(adjoining.graph, expected.graph)) << count;
        EXPECT_TRUE(same_graph(copied.graph, expected.graph)) << count;
        const std::int64_t of_rows = (kOld + count) * kWidth, taken = expected.stats.peak_work_bytes;
        EXPECT_EQ(copied.stats.peak_work_bytes, taken + of_rows) << count;
        EXPECT_EQ(adjoining.stats.peak_work_bytes >= taken + of_rows, count == kMost) << count;

        const auto told = [&](const Vectors& vectors) {
            return detail::append_rows(rows_of(vectors, 0, kOld + count), graph, params, {});
        };
        const detail::AppendedRows of_floats = told(floats), of_bytes = told(integers);
        EXPECT_TRUE(same_graph(of_floats.added, of_bytes.added)) << count;
        EXPECT_EQ(of_floats.objects, of_bytes.objects) << count;
        EXPECT_EQ(of_floats.ends, of_bytes.ends) << count;
        ASSERT_EQ(of_floats.entries.size(), of_bytes.entries.size()) << count;
        for (std::size_t e = 0; e < of_bytes.entries.size(); ++e) {
            EXPECT_EQ(of_floats.entries[e].id, of_bytes.entries[e].id) << e;
            EXPECT_EQ(of_floats.entries[e].distance, of_bytes.entries[e].distance) << e;
        }
    }
}

TEST(Pack, ARowThatCannotBeComparedIsNamedAsEver) {
    Vectors vectors = converted(random_vectors(kRows, kDim, DType::u8), DType::f32);
    BuildParams params = test::cpu_params(5, Metric::Cosine);
    for (std::int64_t c = 0; c < kDim; ++c) vectors.set(600, c, 0);
    EXPECT_NE(test::message_of<InvalidArgument>([&] { build(vectors, params); }).find("vector 600 is zero"),
              std::string::npos);
    vectors.set(600, 2, std::numeric_limits<float>::quiet_NaN());
    EXPECT_NE(test::message_of<InvalidArgument>([&] { build(vectors, params); }).find("vector 600 holds NaN"),
              std::string::npos);
}

}  // namespace
}  // namespace gnnd
