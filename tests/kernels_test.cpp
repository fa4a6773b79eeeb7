// SPDX-License-Identifier: MIT
// Every kernel on every instruction set that this processor runs, against the naive reference.
#include "gnnd/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "gnnd/error.h"
#include "tests/reference.h"

namespace gnnd::cpu {
namespace {

using test::kDTypes;
using test::kMetrics;
using test::order_of;
using test::random_vectors;
using test::Reference;

struct Case {
    Isa isa;
    Metric metric;
    DType dtype;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << name_of(c.isa) << '_' << gnnd::name_of(c.metric) << '_' << gnnd::name_of(c.dtype);
    }
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (Isa isa : supported_isas())
        for (Metric metric : kMetrics)
            for (DType dtype : kVectorDTypes) cases.push_back({isa, metric, dtype});
    return cases;
}

constexpr std::int64_t kDims[] = {1, 3, 31, 128, 257, 960};

class BlockTest : public testing::TestWithParam<Case> {
  protected:
    void agrees_with_reference(std::int64_t d);
    void value_does_not_depend_on_place(std::int64_t d);
};

/// Gathers and multiplies as space.cpp does, slice by slice.
std::vector<float> accumulate(const Kernels& k, const VectorView& x, const std::vector<std::int32_t>& rows,
                              const std::vector<std::int32_t>& columns, int stride, bool triangular) {
    const std::size_t panels = (columns.size() + kPanelColumns - 1) / kPanelColumns;
    std::vector<std::byte> a(rows.size() * kSlice), b(panels * kPanelColumns * kSlice), packed(panels * kPanelBytes);
    std::vector<float> out(rows.size() * stride, NAN);
    const auto* base = static_cast<const std::byte*>(x.data);
    const int slice = int(kSlice / k.element);
    for (std::int64_t begin = 0; begin < x.d; begin += slice) {
        const int width = int(std::min<std::int64_t>(slice, x.d - begin));
        k.gather(base, x.row_bytes(), rows.data(), int(rows.size()), begin, width, a.data());
        k.gather(base, x.row_bytes(), columns.data(), int(columns.size()), begin, width, b.data());
        k.pack(b.data(), int(columns.size()), width, packed.data());
        k.block(a.data(), int(rows.size()), packed.data(), int(columns.size()), width, out.data(), stride,
                {begin > 0, begin + width < x.d}, triangular);
    }
    return out;
}

void BlockTest::agrees_with_reference(std::int64_t d) {
    SCOPED_TRACE(d);
    const Case c = GetParam();
    const auto vectors = random_vectors(20, d, c.dtype, c.metric == Metric::ChiSquare);
    const Kernels k = kernels(c.metric, c.dtype, d, c.isa);
    const std::vector<std::int32_t> rows{3, 1, 4, 15, 9, 2, 6}, columns{5, 3, 0, 8, 19, 7, 9, 3, 2, 11, 4};
    const int stride = kPanelColumns;
    std::vector<float> out = accumulate(k, vectors, rows, columns, stride, false);

    std::vector<float> row_scales, column_scales;
    const auto inverse_norm = [&](std::int32_t i) {
        return float(1 / std::sqrt(reference_distance(vectors, Metric::InnerProduct, i, i).value));
    };
    for (std::int32_t i : rows) row_scales.push_back(inverse_norm(i));
    for (std::int32_t j : columns) column_scales.push_back(inverse_norm(j));
    k.finish(out.data(), int(rows.size()), int(columns.size()), stride, row_scales.data(), column_scales.data());

    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < columns.size(); ++j) {
            const Reference reference = reference_distance(vectors, c.metric, rows[i], columns[j]);
            EXPECT_NEAR(out[i * stride + j], order_of(c.metric, reference.value), tolerance(reference))
                << rows[i] << ", " << columns[j];
        }
}

void BlockTest::value_does_not_depend_on_place(std::int64_t d) {
    SCOPED_TRACE(d);
    const Case c = GetParam();
    const auto vectors = random_vectors(20, d, c.dtype, c.metric == Metric::ChiSquare);
    const Kernels k = kernels(c.metric, c.dtype, d, c.isa);
    std::vector<std::int32_t> ids(18);
    std::iota(ids.begin(), ids.end(), 1);
    const int stride = 2 * kPanelColumns;
    const std::vector<float> triangle = accumulate(k, vectors, ids, ids, stride, true);
    for (int i = 0; i < 18; ++i)
        for (int j = i + 1; j < 18; ++j)
            EXPECT_EQ(triangle[i * stride + j], accumulate(k, vectors, {ids[j]}, {ids[i]}, kPanelColumns, false)[0])
                << i << " " << j;
}

TEST_P(BlockTest, AgreesWithReference) {
    for (std::int64_t d : kDims) agrees_with_reference(d);
}

TEST(KernelsTest, SumsOfBytesAreExactUntilTheyAreStored) {
    // 900 components: sums of squares pass 2^24, where floats stop telling integers apart, in the second of four
    // slices.
    const std::int64_t d = 900;
    std::vector<std::uint8_t> rows(2 * d, 0);
    for (std::int64_t c = 0; c < d; ++c) rows[c] = std::uint8_t(255 - c % 3);
    rows[0] = 1;
    std::int64_t exact = 0;
    for (std::int64_t c = 0; c < d; ++c) exact += std::int64_t(rows[c]) * rows[c];
    const VectorView view{rows.data(), 2, d, DType::u8, 0};
    for (const Isa isa : supported_isas()) {
        const Kernels k = kernels(Metric::L2, DType::u8, d, isa);
        EXPECT_EQ(accumulate(k, view, {0}, {1}, kPanelColumns, false)[0], float(exact)) << name_of(isa);
    }
}

TEST_P(BlockTest, ValueDoesNotDependOnPlace) {
    for (std::int64_t d : kDims) value_does_not_depend_on_place(d);
}

TEST_P(BlockTest, KeysToRowsWhereTheyLie) {
    const Case c = GetParam();
    for (const std::int64_t d : kDims) {
        SCOPED_TRACE(d);
        const Kernels k = kernels(c.metric, c.dtype, d, c.isa);
        const bool normalized = is_normalized(c.metric);
        ASSERT_EQ(k.keys_to != nullptr, c.dtype == DType::f32 && !normalized);
        if (k.keys_to == nullptr) return;
        const auto vectors = random_vectors(40, d, c.dtype, c.metric == Metric::ChiSquare);
        const VectorView view = vectors;
        const auto* rows = static_cast<const float*>(view.data);
        std::vector<std::int32_t> ids(40);
        for (int i = 0; i < 40; ++i) ids[i] = i * 7 % 40;
        for (const int count : {1, 7, 16, 31, 32, 40}) {
            std::vector<float> keys(count + kPanelColumns), alone(kPanelColumns);
            k.keys_to(rows + 3 * d, rows, d, ids.data(), count, keys.data());
            for (int i = 0; i < count; ++i) {
                const Reference reference = reference_distance(vectors, c.metric, 3, ids[i]);
                EXPECT_NEAR(keys[i], order_of(c.metric, reference.value), tolerance(reference)) << ids[i];
                k.keys_to(rows + 3 * d, rows, d, &ids[i], 1, alone.data());
                EXPECT_EQ(keys[i], alone[0]) << ids[i];
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, BlockTest, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

class ScanTest : public testing::TestWithParam<Isa> {
  protected:
    Kernels k = kernels(Metric::L2, DType::f32, 1, GetParam());
    std::mt19937 random{5};
    /// Few different values, so that there are ties.
    std::vector<float> row() {
        std::vector<float> values(100);
        for (float& v : values) v = float(random() % 40);
        return values;
    }
};

TEST_P(ScanTest, NearestIsTheFirstSmallest) {
    for (int round = 0; round < 200; ++round) {
        const std::vector<float> values = row();
        const int begin = int(random() % 99), end = begin + 1 + int(random() % (100 - begin));
        const auto expected = std::min_element(values.begin() + begin, values.begin() + end) - values.begin();
        EXPECT_EQ(k.nearest(values.data(), begin, end), expected) << begin << " to " << end;
    }
}

TEST_P(ScanTest, KeepNearerKeepsTheEarlierOfEquals) {
    std::vector<float> best = row();
    std::vector<std::int32_t> index(100, -1);
    const std::vector<float> before = best, values = row();
    k.keep_nearer(values.data(), 7, 93, 5, best.data(), index.data());
    for (int j = 0; j < 100; ++j) {
        const bool nearer = j >= 7 && j < 93 && values[j] < before[j];
        EXPECT_EQ(best[j], nearer ? values[j] : before[j]);
        EXPECT_EQ(index[j], nearer ? 5 : -1);
    }
}

TEST_P(ScanTest, WithinFindsWhatEitherSideTakes) {
    for (int round = 0; round < 200; ++round) {
        const std::vector<float> values = row(), bounds = row();
        const float bound = float(random() % 10);
        const int begin = int(random() % 100), end = begin + int(random() % (101 - begin));
        std::vector<std::int32_t> hits(100 + kSpareHits), expected;
        hits.resize(k.within(values.data(), begin, end, bound, bounds.data(), hits.data()));
        for (int j = begin; j < end; ++j)
            if (values[j] <= bound || values[j] <= bounds[j]) expected.push_back(j);
        EXPECT_EQ(hits, expected);
    }
}

TEST_P(ScanTest, ListsTakeInTheBestOfWhatTheyAreOffered) {
    const TakeEntries take = taker(GetParam());
    for (int length = 1; length <= 70; ++length) {
        std::vector<std::uint64_t> list(length, ~std::uint64_t(0));
        const std::uint64_t limit = (200 << 8 | 255);
        for (int round = 0; round < 40; ++round) {
            if (round == 20)
                for (auto& entry : list) entry &= ~std::uint64_t(1);  // sampled: OLD from here on
            std::vector<std::uint64_t> offers(random() % 5), expected = list;
            int entered = 0;
            for (auto& offer : offers) {
                offer = (random() % 256) << 8 | (random() % 4) << 1 | 1;
                const bool known =
                    std::any_of(expected.begin(), expected.end(), [&](std::uint64_t e) { return (e | 1) == offer; });
                if (known || offer > limit || offer >= expected.back()) continue;
                expected.back() = offer;
                std::sort(expected.begin(), expected.end());
                ++entered;
            }
            EXPECT_EQ(take(list.data(), length, offers.data(), int(offers.size()), limit), entered);
            ASSERT_EQ(list, expected) << length;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, ScanTest, testing::ValuesIn(supported_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

TEST(Kernels, RefuseIdsAsVectors) {
    EXPECT_THROW(kernels(Metric::L2, DType::i32, 1, Isa::baseline), InvalidArgument);
}

}  // namespace
}  // namespace gnnd::cpu
