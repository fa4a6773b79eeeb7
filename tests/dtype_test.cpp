// SPDX-License-Identifier: MIT
#include "gnnd/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/vectors.h"

namespace gnnd {
namespace {

TEST(DType, SizesAndNames) {
    EXPECT_EQ(size_of(DType::f32), 4u);
    EXPECT_EQ(size_of(DType::f16), 2u);
    EXPECT_EQ(size_of(DType::u8), 1u);
    EXPECT_EQ(size_of(DType::i8), 1u);
    EXPECT_EQ(size_of(DType::i32), 4u);
    EXPECT_EQ(name_of(DType::f32), "f32");
    EXPECT_EQ(name_of(DType::f16), "f16");
    EXPECT_EQ(name_of(DType::u8), "u8");
    EXPECT_EQ(name_of(DType::i8), "i8");
    EXPECT_EQ(name_of(DType::i32), "i32");
    EXPECT_EQ(size_of(DType::bf16), 2u);
    EXPECT_EQ(name_of(DType::bf16), "bf16");
    EXPECT_THROW(size_of(DType(6)), InvalidArgument);
    EXPECT_THROW(name_of(DType(6)), InvalidArgument);
    EXPECT_EQ(vector_dtype_names(), "f32, f16, u8, i8 and bf16");
    EXPECT_THROW(is_byte(DType::i32), InvalidArgument);
    EXPECT_THROW(is_byte(DType(6)), InvalidArgument);
}

TEST(BFloat16, EveryPatternRoundTripsAndHasItsFloatsUpperBits) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const float wide = to_float(bfloat16{std::uint16_t(bits)});
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), bits << 16);
        const bool quiet_or_number = !std::isnan(wide) || (bits & 0x40) != 0;
        ASSERT_EQ(to_bfloat16(wide).bits, quiet_or_number ? bits : bits | 0x40) << bits;
    }
}

// Between each two neighbours: the midpoint goes to the even one, a float to its left or right to the nearer.
TEST(BFloat16, RoundsToNearestTiesToEven) {
    for (std::uint32_t low = 0; low < 0x7f80; ++low) {
        const std::uint32_t middle = low << 16 | 0x8000u, even = low % 2 == 0 ? low : low + 1;
        for (const std::uint32_t sign : {0u, 0x8000u}) {
            const auto rounded = [&](std::uint32_t bits) {
                return to_bfloat16(std::bit_cast<float>(bits | sign << 16)).bits ^ sign;
            };
            ASSERT_EQ(rounded(middle), even);
            ASSERT_EQ(rounded(middle - 1), low);
            ASSERT_EQ(rounded(middle + 1), low + 1);
        }
    }
    EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
    EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

/// The value of a finite half by the definition of the format.
double value_of(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, EveryPatternHasItsValueAndRoundTrips) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const float wide = to_float(half{std::uint16_t(bits)});
        if ((bits & 0x7fff) < 0x7c00)
            ASSERT_EQ(double(wide), value_of(std::uint16_t(bits))) << bits;
        else if ((bits & 0x7fff) == 0x7c00)
            ASSERT_EQ(wide, bits & 0x8000 ? -INFINITY : INFINITY) << bits;
        else
            ASSERT_TRUE(std::isnan(wide)) << bits;
        ASSERT_EQ(std::signbit(wide), bits >= 0x8000) << bits;
        ASSERT_EQ(to_half(wide).bits, bits);
    }
}

// Between each two neighbouring halves: the midpoint goes to the even one, a float to its left or right to the nearer.
TEST(Half, RoundsToNearestTiesToEven) {
    for (std::uint32_t low = 0; low < 0x7c00; ++low) {
        const std::uint32_t high = low + 1;
        const double upper = high == 0x7c00 ? 65536.0 : value_of(std::uint16_t(high));
        const float middle = float((value_of(std::uint16_t(low)) + upper) / 2);
        const std::uint32_t even = low % 2 == 0 ? low : high;
        for (const float sign : {1.0f, -1.0f}) {
            const std::uint32_t sign_bit = sign < 0 ? 0x8000 : 0;
            ASSERT_EQ(to_half(sign * middle).bits, sign_bit | even) << middle;
            ASSERT_EQ(to_half(sign * std::nextafter(middle, 0.0f)).bits, sign_bit | low) << middle;
            ASSERT_EQ(to_half(sign * std::nextafter(middle, 1e9f)).bits, sign_bit | high) << middle;
        }
    }
}

TEST(Half, ExtremesOfFloat) {
    EXPECT_EQ(to_half(65519.996f).bits, 0x7bff);
    EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);
    EXPECT_EQ(to_half(std::numeric_limits<float>::max()).bits, 0x7c00);
    EXPECT_EQ(to_half(-std::numeric_limits<float>::max()).bits, 0xfc00);
    EXPECT_EQ(to_half(std::numeric_limits<float>::denorm_min()).bits, 0);
    EXPECT_EQ(to_half(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
    // A NaN whose payload lies in the bits that are cut off must not turn into infinity.
    EXPECT_EQ(to_half(std::bit_cast<float>(0x7f800001u)).bits & 0x7fff, 0x7e00);
}

#if defined(__ARM_FP16_FORMAT_IEEE)
using CompilersHalf = __fp16;  // GCC 12 has no _Float16 in C++ there
#define GNND_COMPILERS_HALF
#elif defined(__FLT16_MAX__)
using CompilersHalf = _Float16;
#define GNND_COMPILERS_HALF
#endif

#ifdef GNND_COMPILERS_HALF
TEST(Half, AgreesWithTheCompiler) {
    std::mt19937 random(7);
    for (int i = 0; i < 200000; ++i) {
        // Exponents from far below the subnormals to just above overflow.
        const std::uint32_t exponent = 95 + random() % 50;
        const float value = std::bit_cast<float>(std::uint32_t(random() & 0x807fffffu) | exponent << 23);
        ASSERT_EQ(to_half(value).bits, std::bit_cast<std::uint16_t>(CompilersHalf(value))) << value;
    }
}
#endif

template <class T>
class CopyAsF32 : public ::testing::Test {};

template <class T>
constexpr DType kDType = DType::f32;
template <>
constexpr DType kDType<half> = DType::f16;
template <>
constexpr DType kDType<std::uint8_t> = DType::u8;
template <>
constexpr DType kDType<std::int8_t> = DType::i8;

template <class T>
T make(int value) {
    if constexpr (std::is_same_v<T, half>)
        return to_half(float(value));
    else
        return T(value);
}

using Types = ::testing::Types<float, half, std::uint8_t, std::int8_t>;
TYPED_TEST_SUITE(CopyAsF32, Types);

TYPED_TEST(CopyAsF32, RangesWithAndWithoutStride) {
    const bool is_signed = !std::is_same_v<TypeParam, std::uint8_t>;
    for (const std::int64_t d : {1, 3, 17})
        for (const std::int64_t padding : {0, 5}) {
            const std::int64_t n = 11;
            const auto value = [&](std::int64_t i, std::int64_t j) {
                const int v = int((i * 31 + j * 7) % 127);
                return is_signed && (i + j) % 2 ? -v - 1 : v;
            };
            std::vector<TypeParam> data(std::size_t(n * (d + padding)));
            for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t j = 0; j < d; ++j)
                    data[std::size_t(i * (d + padding) + j)] = make<TypeParam>(value(i, j));
            const std::int64_t stride = padding == 0 ? 0 : (d + padding) * std::int64_t(sizeof(TypeParam));
            const VectorView view{data.data(), n, d, kDType<TypeParam>, stride};
            for (const std::int64_t begin : {0, 4, 11}) {
                const std::int64_t count = n - begin;
                std::vector<float> out(std::size_t(count * d) + 1, -1000.0f);
                copy_as_f32(view, begin, count, out.data());
                for (std::int64_t i = 0; i < count; ++i)
                    for (std::int64_t j = 0; j < d; ++j)
                        ASSERT_EQ(out[std::size_t(i * d + j)], float(value(begin + i, j)));
                ASSERT_EQ(out.back(), -1000.0f);
            }
        }
}

TEST(CopyAsF32Range, RefusesIdsAndRowsOutside) {
    const std::int32_t ids[6] = {};
    float out[6];
    EXPECT_THROW(copy_as_f32({ids, 2, 3, DType::i32, 0}, 0, 2, out), InvalidArgument);
    const VectorView view{ids, 2, 3, DType::f32, 0};
    EXPECT_THROW(copy_as_f32(view, -1, 1, out), InvalidArgument);
    EXPECT_THROW(copy_as_f32(view, 0, -1, out), InvalidArgument);
    EXPECT_THROW(copy_as_f32(view, 1, 2, out), InvalidArgument);
    EXPECT_THROW(copy_as_f32(view, std::numeric_limits<std::int64_t>::max(), 1, out), InvalidArgument);
}

}  // namespace
}  // namespace gnnd
