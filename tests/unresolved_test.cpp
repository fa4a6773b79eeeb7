// SPDX-License-Identifier: MIT
// Cosines too near 1 for float32 are told of.
#include "gnnd/detail/unresolved.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "gnnd/builder.h"
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

TEST(Unresolved, CountsTheColumnThatIsAskedFor) {
    // Of four objects two have a second neighbour whose cosine float32 rounds; a row that ends before it tells nothing.
    const float near = 1 - 0x1p-17F, far = 1 - 0x1p-13F, none = worst_value(Metric::Cosine);
    const std::vector<float> values{1, near, far, near, near, none, 1, far, far, 1, none, none};
    const std::vector<std::int32_t> ids(values.size());
    const KnnGraphView graph{4, 3, Metric::Cosine, ids.data(), values.data()};
    EXPECT_EQ(detail::unresolved_share(graph, 1, 4), 1);
    EXPECT_EQ(detail::unresolved_share(graph, 2, 4), 0.5);
    EXPECT_EQ(detail::unresolved_share(graph, 3, 4), 0);
    EXPECT_EQ(detail::unresolved_share(graph, 2, 1), 0) << "one component: all are 1 or -1";
    EXPECT_EQ(detail::unresolved_share(graph, 2, 100), 0.75) << "longer sums err by more";
}

TEST(Unresolved, IsAWarningWhereItConcernsHalf) {
    EXPECT_EQ(unresolved_warning(0.49), "");
    EXPECT_EQ(unresolved_warning(0.5).substr(0, 26), "the cosines of 50% of the ");
}

}  // namespace
}  // namespace gnnd
