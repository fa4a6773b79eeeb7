// SPDX-License-Identifier: MIT
// Floats as int8: the kernels against the host. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/space/codes.h"
#include "tests/cuda_lists.h"
#include "tests/gpu.h"
#include "tests/reference.h"

namespace gnnd::cuda {
namespace {

using test::Vectors;

constexpr int kN = 2000;

/// Vectors as prepare_space() and pack_again() leave them, on the host.
struct Packed {
    std::int64_t n, d;
    std::vector<float> mean, errors;
    std::vector<std::uint8_t> halves, halves_again, codes;
    std::vector<u32> norms, code_norms;
    SpaceInfo of_halves, of_codes;
    int row_bytes;

    Packed(const VectorView& vectors, Metric metric) : n(vectors.n), d(vectors.d) {
        const OnDevice<std::byte> copy(std::size_t(n * vectors.row_bytes()),
                                       static_cast<const std::byte*>(vectors.data));
        const RawVectors raw{copy.get(), n, d, vectors.row_bytes(), vectors.dtype};
        const VectorForm half_form = form_of(vectors, false, metric), form = code_form(d);
        row_bytes = form.row_bytes;
        const OnDevice<std::uint8_t> rows(std::size_t(n * half_form.row_bytes));
        const OnDevice<u32> bias{std::size_t(n)};
        const OnDevice<float> work(std::size_t(2 * d + kCodeErrorBytes / 4));
        const OnDevice<SpaceInfo> info(1);
        const OnDevice<float> code_errors{std::size_t(n)};
        prepare_space(raw, metric, half_form, rows, bias, work, info, nullptr);
        halves = rows.read();
        norms = bias.read();
        of_halves = info.read()[0];
        pack_again(raw, metric, form, rows, bias, code_errors, work, info, nullptr);
        errors = code_errors.read();
        codes = rows.read();
        code_norms = bias.read();
        of_codes = info.read()[0];
        mean = work.read();
        pack_again(raw, metric, half_form, rows, bias, nullptr, work, info, nullptr);
        halves_again = rows.read();
        EXPECT_EQ(bias.read(), norms);
        const SpaceInfo again = info.read()[0];
        EXPECT_EQ(again.scale, of_halves.scale);
        EXPECT_EQ(again.unit, of_halves.unit);
    }
    int code(std::int64_t i, std::int64_t c) const { return std::int8_t(codes[std::size_t(i * row_bytes + c)]); }
};

/// Returns the components that are packed, by definition: in the vectors' units, after the mean was taken off.
std::vector<double> centred(const VectorView& vectors, Metric metric, const Packed& packed) {
    const std::int64_t n = vectors.n, d = vectors.d;
    std::vector<float> rows(std::size_t(n * d));
    copy_as_f32(vectors, 0, n, rows.data());
    std::vector<double> out(rows.begin(), rows.end());
    double mean_square = 0;
    for (std::int64_t c = 0; c < d; ++c) mean_square += double(packed.mean[std::size_t(d + c)]);
    for (std::int64_t i = 0; i < n; ++i) {
        double square = 0;
        for (std::int64_t c = 0; c < d; ++c) square += out[i * d + c] * out[i * d + c];
        const bool normalized = metric == Metric::Cosine;
        for (std::int64_t c = 0; c < d; ++c)
            out[i * d + c] = out[i * d + c] / (normalized ? std::sqrt(square) : 1) -
                             double(packed.mean[std::size_t(c)]) / (normalized ? std::sqrt(mean_square) : 1);
    }
    return out;
}

/// Squared error of the rows that the scale is chosen by, as codes of that scale.
double error_of(const std::vector<double>& rows, std::int64_t n, std::int64_t d, double scale) {
    double error = 0;
    for (int r = 0; r < kCodeRows; ++r)
        for (std::int64_t c = 0; c < d; ++c) {
            const double x = rows[std::size_t(n * r / kCodeRows * d + c)];
            const double rest = x - std::clamp(std::rint(x * scale), -127.0, 127.0) / scale;
            error += rest * rest;
        }
    return error;
}

struct CodesCase {
    Metric metric;
    DType dtype;
    std::int64_t d;
    friend std::ostream& operator<<(std::ostream& out, const CodesCase& c) {
        return out << name_of(c.metric) << '_' << name_of(c.dtype) << '_' << c.d;
    }
};

/// Vectors of a case, packed, and by definition.
struct Coded {
    const Metric metric;
    const std::int64_t d;
    const Vectors vectors;
    const Packed packed;
    const std::vector<double> rows;  ///< see centred()
    const double scale;              ///< of the codes

    explicit Coded(const CodesCase& c)
        : metric(c.metric),
          d(c.d),
          vectors(test::vectors_for(c.metric, kN, c.d, c.dtype)),
          packed(vectors, metric),
          rows(centred(vectors, metric, packed)),
          scale(double(packed.of_codes.scale)) {}

    /// Of a row, or of what it differs from its code by, in the vectors' units.
    double length_of(std::int64_t i, bool error) const {
        double sum = 0;
        for (std::int64_t c = 0; c < d; ++c) {
            const double x = rows[std::size_t(i * d + c)], rest = error ? x - packed.code(i, c) / scale : x;
            sum += rest * rest;
        }
        return std::sqrt(sum);
    }
};

class CudaKernelCodes : public testing::TestWithParam<CodesCase> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaKernelCodes, AreThoseOfTheHost) {
    const Coded coded(GetParam());
    const auto& [metric, d, vectors, packed, rows, scale] = coded;
    int differing = 0;
    for (std::int64_t i = 0; i < kN; ++i) {
        u32 norm = 0;
        for (std::int64_t c = 0; c < packed.row_bytes; ++c) {
            const int code = packed.code(i, c);
            norm += u32(code * code);
            const double x = c < d ? std::clamp(rows[std::size_t(i * d + c)] * scale, -127.0, 127.0) : 0;
            ASSERT_LE(std::abs(code - x), 0.501) << "row " << i << ", component " << c;
            differing += code != int(std::rint(x));  // half-way between two, float32 decides
        }
        ASSERT_EQ(packed.code_norms[std::size_t(i)], norm) << i;
    }
    EXPECT_LE(differing, kN * d / 1000);
    EXPECT_EQ(packed.halves, packed.halves_again);
}

TEST_P(CudaKernelCodes, HaveTheScaleOfTheLeastError) {
    const Coded coded(GetParam());
    const auto& [metric, d, vectors, packed, rows, scale] = coded;
    const double largest = metric == Metric::Cosine ? 1 : double(__builtin_bit_cast(float, packed.of_codes.largest));
    double least = INFINITY;
    for (int i = 0; i < kCodeScales; ++i)
        least = std::min(least, error_of(rows, kN, d, 127 / largest * std::exp2(0.25 * i)));
    EXPECT_LE(error_of(rows, kN, d, scale), 1.001 * least);
    EXPECT_NEAR(double(packed.of_codes.code_error), least * scale * scale / kCodeRows,
                0.01 * packed.of_codes.code_error);
}

/// What all pairs may be off by when they are compared as codes.
TEST_P(CudaKernelCodes, DifferFromTheirRowsByNoMoreThanTheySay) {
    const Coded coded(GetParam());
    const std::vector<float>& errors = coded.packed.errors;
    for (std::int64_t i = 0; i < kN; ++i) {
        const double told = double(errors[std::size_t(i)]), error = coded.length_of(i, true) * coded.scale;
        ASSERT_GE(told, error) << i;
        ASSERT_LE(told, 1.001 * error + 1e-3) << i;
    }
    EXPECT_EQ(__builtin_bit_cast(float, coded.packed.of_codes.largest_error),
              *std::max_element(errors.begin(), errors.end()));
}

/// Distances of codes are off by the errors of both rows, at most.
TEST_P(CudaKernelCodes, DistancesAreTheMetricsButForTheErrors) {
    const Coded coded(GetParam());
    const auto& [metric, d, vectors, packed, rows, scale] = coded;
    const auto length_of = [&](std::int64_t i, bool error) { return coded.length_of(i, error); };
    for (std::int64_t i = 0; i + 7 < kN; i += 13) {
        const std::int64_t j = i + 7;
        double product = 0;
        for (std::int64_t c = 0; c < d; ++c) product += packed.code(i, c) * packed.code(j, c);
        const bool l2 = metric != Metric::InnerProduct;
        const double distance =
            l2 ? packed.code_norms[std::size_t(i)] + packed.code_norms[std::size_t(j)] - 2 * product : -product;
        const double value = distance * double(packed.of_codes.unit) + double(packed.of_codes.offset);
        const double wanted = test::reference_distance(vectors, metric, i, j).value;
        const double errors = length_of(i, true) + length_of(j, true);
        if (!l2)
            ASSERT_LE(std::abs(value - wanted), 1e-5 + length_of(i, true) * (length_of(j, false) + errors) +
                                                    length_of(j, true) * length_of(i, false));
        else if (metric == Metric::L2)
            ASSERT_LE(std::abs(std::sqrt(value) - std::sqrt(wanted)), errors + 1e-5);
        else
            ASSERT_LE(std::abs(std::sqrt(2 - 2 * value) - std::sqrt(2 - 2 * wanted)), errors + 1e-3);
    }
}

std::vector<CodesCase> all_codes() {
    std::vector<CodesCase> all;
    for (const Metric metric : {Metric::L2, Metric::Cosine, Metric::InnerProduct})
        for (const std::int64_t d : {17, 96, 131}) all.push_back({metric, DType::f32, d});
    all.push_back({Metric::L2, DType::f16, 64});
    all.push_back({Metric::Cosine, DType::bf16, 40});
    return all;
}
INSTANTIATE_TEST_SUITE_P(All, CudaKernelCodes, testing::ValuesIn(all_codes()), testing::PrintToStringParamName());

TEST(CudaKernelCodesScale, CutsWhatIsRare) {
    SKIP_WITHOUT_GPU();
    Vectors vectors = test::random_vectors(kN, 64, DType::f32);
    vectors.set(3, 5, 1000);
    const Packed packed(vectors, Metric::L2);
    EXPECT_GT(packed.of_codes.scale, 20 * 127.0f / 1000);
    EXPECT_EQ(packed.code(3, 5), 127);
}

TEST(CudaKernelCodesScale, CountsObjectsWithNearerNeighbours) {
    SKIP_WITHOUT_GPU();
    constexpr int kObjects = 1000, kCapacity = 11, kTake = 8;
    std::mt19937 random(3);
    SpaceInfo info{};
    info.code_error = 2;
    std::vector<u64> entries(kObjects * kCapacity);
    u32 coarse = 0;
    for (int i = 0; i < kObjects; ++i) {
        float farthest = 0;
        for (int j = 0; j < kCapacity; ++j) {
            const float distance = random() % 20 == 0 ? INFINITY : float(random() % 70);
            entries[std::size_t(i * kCapacity + j)] = std::uint64_t(__builtin_bit_cast(u32, distance)) << 32 | u32(j);
            if (j < kTake) farthest = std::max(farthest, distance);
        }
        coarse += farthest < kCoarse * 2 * info.code_error;
    }
    ASSERT_GT(coarse, 10u);
    const OnDevice<u64> there(entries);
    const OnDevice<SpaceInfo> info_there(1, &info);
    count_coarse({there.get(), nullptr, kCapacity}, kTake, kObjects, info_there, nullptr);
    EXPECT_EQ(info_there.read()[0].coarse, coarse);
}

}  // namespace
}  // namespace gnnd::cuda
