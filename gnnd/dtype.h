#pragma once
/// \file dtype.h
/// Element types of vectors and the conversion between float16 and float32.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gnnd {

/// Element type of a vector component. i32 occurs in files of ids (ivecs, ibin) only; build() refuses it.
/// The numeric values are part of the graph file format and never change.
enum class DType : std::uint32_t { f32 = 0, f16 = 1, u8 = 2, i8 = 3, i32 = 4 };

/// IEEE 754 binary16, as raw bits.
struct half {
    std::uint16_t bits;
};

/// Bytes of one component.
std::size_t size_of(DType dtype);

/// "f32", "f16", "u8", "i8" or "i32".
std::string_view name_of(DType dtype);
/// \throws InvalidArgument that lists the known names
DType parse_dtype(std::string_view name);

/// Exact conversion of binary16 (subnormals, infinities and NaN included) to binary32.
inline float to_float(half h) {
    const std::uint32_t sign = std::uint32_t(h.bits & 0x8000u) << 16;
    const std::uint32_t magnitude = h.bits & 0x7fffu;
    if (magnitude >= 0x7c00u)  // infinity, NaN
        return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    // Shifting the fields into place leaves the exponent 112 too small; the product mends it, subnormals too.
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// Round to nearest, ties to even; overflow gives infinity.
half to_half(float value);

}  // namespace gnnd
