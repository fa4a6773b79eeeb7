// SPDX-License-Identifier: MIT
// Cosines too near 1 for float32, and products too near 0, are told of.
#include "gnnd/detail/unresolved.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/merge.h"
#include "tests/cpu.h"

namespace gnnd {
namespace {

constexpr std::int64_t kRows = 1000, kDim = 16;

/// Gaussian components around an offset.
std::vector<float> around(float offset) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> rows(kRows * kDim);
    for (float& component : rows) component = offset + normal(random);
    return rows;
}

BuildStats built(const std::vector<float>& rows, Metric metric, bool exact = false) {
    BuildParams params = test::cpu_params(10, metric);
    const VectorView view{rows.data(), kRows, kDim, DType::f32, 0};
    return exact ? build_exact(view, params).stats : build(view, params).stats;
}

TEST(Unresolved, IsTheShareThatRoundingDecides) {
    EXPECT_EQ(built(around(0), Metric::Cosine).unresolved, 0);
    for (const bool exact : {false, true}) {
        SCOPED_TRACE(exact);
        EXPECT_EQ(built(around(1000), Metric::Cosine, exact).unresolved, 1);
    }
    for (const Metric metric : {Metric::L2, Metric::InnerProduct})
        EXPECT_EQ(built(around(1000), metric).unresolved, 0) << name_of(metric);
}

/// Gaussian components of a size.
std::vector<float> scaled(float size) {
    std::vector<float> rows = around(0);
    for (float& component : rows) component = std::abs(component) * size;
    return rows;
}

TEST(Unresolved, IsTheShareWhoseProductsVanish) {
    for (const Metric metric : {Metric::L2, Metric::InnerProduct}) {
        SCOPED_TRACE(name_of(metric));
        for (const bool exact : {false, true}) {
            EXPECT_EQ(built(scaled(1e-30F), metric, exact).unresolved, 1);
            EXPECT_EQ(built(scaled(1e-18F), metric, exact).unresolved, 0);
        }
        EXPECT_GT(built(scaled(1e-22F), metric).unresolved, 0.5);
        EXPECT_EQ(built(std::vector<float>(kRows * kDim), metric).unresolved, 0) << "all are copies, of products of 0";
    }
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare})
        EXPECT_EQ(built(scaled(1e-30F), metric).unresolved, 0) << name_of(metric);
}

TEST(Unresolved, ProductsThatAreZeroAreTold) {
    // Two of each four objects have components in common, and rows go on with those that have none.
    std::vector<float> rows(kRows * kDim);
    for (std::int64_t i = 0; i < kRows; ++i) rows[i * kDim + i / 2 % kDim] = 1;
    BuildParams params = test::cpu_params(100, Metric::InnerProduct);
    const BuildResult result = build_exact({rows.data(), kRows, kDim, DType::f32, 0}, params);
    EXPECT_EQ(result.graph.distances_of(0)[99], 0);
    EXPECT_EQ(result.stats.unresolved, 0);
}

TEST(Unresolved, ChiSquareHasNoSquaresThatVanish) {
    const auto rows = [](float size) {
        const std::vector<float> all = scaled(size);
        return build_exact({all.data(), kRows, kDim, DType::f32, 0}, test::cpu_params(10, Metric::ChiSquare)).graph;
    };
    const KnnGraph some = rows(1), small = rows(0x1p-110F);  // a power of 2, by which all values are multiplied
    for (std::int64_t i = 0; i < kRows; ++i)
        for (int j = 0; j < 10; ++j) {
            ASSERT_EQ(small.ids_of(i)[j], some.ids_of(i)[j]) << i << " " << j;
            ASSERT_EQ(small.distances_of(i)[j], some.distances_of(i)[j] * 0x1p-110F);
        }
}

TEST(Unresolved, CountsTheColumnThatIsAskedFor) {
    // Of four objects two have a second neighbour whose cosine float32 rounds; a row that ends before it does not
    // count.
    const float near = 1 - 0x1p-17F, far = 1 - 0x1p-13F, none = worst_value(Metric::Cosine);
    const std::vector<float> values{1, near, far, near, near, none, 1, far, far, 1, none, none};
    const std::vector<std::int32_t> ids{1, 2, 3, 0, 2, -1, 0, 1, 3, 0, -1, -1};
    const KnnGraphView graph{4, 3, Metric::Cosine, ids.data(), values.data()};
    std::vector<float> rows(4 * 100);
    std::iota(rows.begin(), rows.end(), 1.0f);
    const auto share = [&](int at, std::int64_t d, const std::int32_t* objects = nullptr) {
        return detail::unresolved_share(graph, objects, at, {{{rows.data(), 4, d, DType::f32, 0}}, {}});
    };
    EXPECT_EQ(share(1, 4), 1);
    EXPECT_EQ(share(2, 4), 0.5);
    EXPECT_EQ(share(3, 4), 0);
    EXPECT_EQ(share(2, 1), 0) << "one component: all are 1 or -1";
    EXPECT_EQ(share(2, 100), 0.75) << "longer sums err by more";
    const std::int32_t objects[] = {2, 1, 3, 0};
    EXPECT_EQ(share(2, 4, objects), 0.25) << "the first row's second neighbour is itself";
}

TEST(Unresolved, ProductsThatCancelEachOtherHaveNotVanished) {
    const std::vector<std::int32_t> ids{1, 0};
    const std::vector<float> values{0, 0};  // as float32 sums them up, which loses the small one
    const KnnGraphView graph{2, 1, Metric::InnerProduct, ids.data(), values.data()};
    const auto share = [&](const std::vector<float>& rows) {
        return detail::unresolved_share(graph, nullptr, 1, {{{rows.data(), 2, 3, DType::f32, 0}}, {}});
    };
    EXPECT_EQ(share({3e-9F, 1, 1, 1, 1, -1}), 0);
    EXPECT_EQ(share({3e-30F, 1e-30F, 1e-30F, 1e-30F, 1e-30F, -1e-30F}), 1);
}

TEST(Unresolved, CopiesAreNearestWhateverRounds) {
    const std::vector<float> some = around(1000);
    std::vector<float> rows(some.size());
    for (std::int64_t i = 0; i < kRows; ++i) std::copy_n(&some[i / 20 * kDim], kDim, &rows[i * kDim]);
    EXPECT_EQ(built(rows, Metric::Cosine).unresolved, 0);
    const VectorView first{rows.data(), 500, kDim, DType::f32, 0}, second{&rows[500 * kDim], 500, kDim, DType::f32, 0};
    const BuildParams params = test::cpu_params(10, Metric::Cosine);
    const KnnGraph graph = build(first, params).graph, other = build(second, params).graph;
    EXPECT_EQ(merge(first, graph, second, other, params).stats.unresolved, 0);
}

TEST(Unresolved, IsAWarningWhereItConcernsHalf) {
    EXPECT_EQ(unresolved_warning(0.49), "");
    EXPECT_EQ(unresolved_warning(0.5).substr(0, 26), "the cosines of 50% of the ");
    EXPECT_EQ(unresolved_warning(0.4, Metric::L2), "");
    EXPECT_EQ(unresolved_warning(0.7, Metric::L2).substr(0, 29), "the components of 70% of the ");
}

}  // namespace
}  // namespace gnnd
