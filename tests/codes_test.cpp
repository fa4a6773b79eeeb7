// SPDX-License-Identifier: MIT
// Codes of floats: what they stand for, and that no pair is lost by comparing them first.
#include "gnnd/cpu/codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gnnd/cpu/backend.h"

namespace gnnd::cpu {
namespace {

constexpr std::int64_t kRows = 300, kDim = 70;

struct Set {
    const char* name;
    void (*make)(std::mt19937& random, std::int64_t i, float* row);
    friend std::ostream& operator<<(std::ostream& out, const Set& set) { return out << set.name; }
};

float normal(std::mt19937& random) {
    return std::normal_distribution<float>()(random);
}

const Set kSets[] = {
    {"gauss",
     [](std::mt19937& random, std::int64_t, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = normal(random);
     }},
    {"far_from_the_origin",
     [](std::mt19937& random, std::int64_t, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = 1000 + normal(random);
     }},
    {"one_long_column",
     [](std::mt19937& random, std::int64_t, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = normal(random) * (c == 3 ? 1e4F : 1.0F);
     }},
    {"outliers",
     [](std::mt19937& random, std::int64_t i, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = normal(random) * (i % 50 == 49 ? 1e5F : 1.0F);
     }},
    {"lognormal_lengths",
     [](std::mt19937& random, std::int64_t, float* row) {
         const float length = std::exp(2 * normal(random));
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = length * normal(random);
     }},
    {"equal",
     [](std::mt19937&, std::int64_t, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = 0.5F;
     }},
    {"tiny",
     [](std::mt19937& random, std::int64_t, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = 1e-18F * normal(random);
     }},
    {"subnormal_squares",
     [](std::mt19937& random, std::int64_t, float* row) {
         for (std::int64_t c = 0; c < kDim; ++c) row[c] = 1e-22F * normal(random);
     }},
};

class CodesTest : public testing::TestWithParam<std::tuple<Set, Metric>> {
  protected:
    const std::vector<float> rows = [] {
        std::vector<float> all(kRows * kDim);
        std::mt19937 random(3);
        for (std::int64_t i = 0; i < kRows; ++i) std::get<0>(GetParam()).make(random, i, all.data() + i * kDim);
        return all;
    }();
    HeapResources heap;
    const Team team{2, nullptr};
    const Space space{VectorView{rows.data(), kRows, kDim, DType::f32, 0}, std::get<1>(GetParam()), team, heap};
    const CodedRows codes{space, team, heap};
    const std::vector<std::int32_t> all = [] {
        std::vector<std::int32_t> ids(kRows);
        for (std::int32_t i = 0; i < kRows; ++i) ids[i] = i;
        return ids;
    }();
    const std::vector<std::int32_t> others = all;  // of the same array a block computes one triangle
};

TEST_P(CodesTest, NoPairIsBeyondReach) {
    if (!fault_of_row(space.vectors, space.metric).empty()) GTEST_SKIP() << "the metric refuses such rows";
    Block exact(space, kRows, kRows, heap), coarse(codes.space(), kRows, kRows, heap);
    exact.compute(all.data(), kRows, others.data(), kRows);
    coarse.compute(all.data(), kRows, others.data(), kRows);
    for (std::int32_t i = 0; i < kRows; ++i)
        for (std::int32_t j = 0; j < kRows; ++j) {
            // Alone and in a group: what a group allows is what its worst object does.
            const CodedRows::Extent one = codes.extent(&j, 1), group = codes.extent(all.data(), kRows);
            const float reach = codes.reach(i, exact.row(i)[j], one);
            ASSERT_LE(coarse.row(i)[j], reach) << i << ", " << j;
            ASSERT_LE(reach, codes.reach(i, exact.row(i)[j], group));
        }
    EXPECT_EQ(codes.reach(0, HUGE_VALF, codes.extent(all.data(), kRows)), HUGE_VALF);
}

TEST_P(CodesTest, PairsHaveTheValuesOfBlocks) {
    Block block(space, kRows, kRows, heap);
    block.compute(all.data(), kRows, others.data(), kRows);
    PairBlock pairs(space, 40, heap);
    for (int count : {1, 16, 17, 40}) {
        std::vector<std::int32_t> a(count), b(count);
        for (int p = 0; p < count; ++p) {
            a[p] = (7 * p) % kRows;
            b[p] = (13 * p + 5) % kRows;
        }
        pairs.compute(a.data(), b.data(), count);
        for (int p = 0; p < count; ++p) EXPECT_EQ(pairs.keys()[p], block.row(a[p])[b[p]]) << p << " of " << count;
    }
}

INSTANTIATE_TEST_SUITE_P(All, CodesTest,
                         testing::Combine(testing::ValuesIn(kSets),
                                          testing::Values(Metric::L2, Metric::InnerProduct, Metric::Cosine)),
                         [](const auto& test) {
                             return std::string(std::get<0>(test.param).name) + "_" +
                                    std::string(name_of(std::get<1>(test.param)));
                         });

TEST(Codes, TellFarFromNear) {
    // Were errors taken too large, every pair would be within reach, and nothing be gained.
    HeapResources heap;
    const Team team{1, nullptr};
    std::mt19937 random(4);
    std::vector<float> rows(kRows * kDim);
    for (std::int64_t i = 0; i < kRows; ++i) kSets[0].make(random, i, rows.data() + i * kDim);
    const Space space(VectorView{rows.data(), kRows, kDim, DType::f32, 0}, Metric::L2, team, heap);
    const CodedRows codes(space, team, heap);
    Block coarse(codes.space(), kRows, kRows, heap);
    std::vector<std::int32_t> ids(kRows);
    for (std::int32_t i = 0; i < kRows; ++i) ids[i] = i;
    const std::vector<std::int32_t> columns = ids;
    coarse.compute(ids.data(), kRows, columns.data(), kRows);
    const CodedRows::Extent others = codes.extent(ids.data(), kRows);
    int within = 0;
    for (std::int32_t i = 0; i < kRows; ++i)
        for (std::int32_t j = 0; j < kRows; ++j) within += coarse.row(i)[j] <= codes.reach(i, kDim, others);
    // Half of the mean distance: only an object itself is so near.
    EXPECT_LE(within, 2 * kRows);
}

TEST(Codes, PayForFloatsUnderProductsOnly) {
    for (const Metric metric : {Metric::L1, Metric::Linf, Metric::ChiSquare})
        EXPECT_FALSE(CodedRows::pay(metric, DType::f32, 100));
    for (const DType dtype : {DType::u8, DType::i8}) EXPECT_FALSE(CodedRows::pay(Metric::L2, dtype, 100));
    EXPECT_FALSE(CodedRows::pay(Metric::L2, DType::f32, kMaxIntegerDim + 1));
    EXPECT_EQ(CodedRows::pay(Metric::L2, DType::f16, 100), supported_isas().back() == Isa::avx512vnni);
}

}  // namespace
}  // namespace gnnd::cpu
