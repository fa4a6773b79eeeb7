// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file dtype.h
/// Element types of vectors, and conversions between the 16-bit floats and float32.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// All element types: the name, the number in files, which never changes, and the C++ type. Those that VECTOR lists are
/// what vectors consist of; i32 occurs in files of ids (ivecs, ibin) only.
// clang-format off
#define GNND_VECTOR_DTYPES(apply) \
    apply(f32, 0, float)          \
    apply(f16, 1, ::gnnd::half)   \
    apply(u8, 2, std::uint8_t)    \
    apply(i8, 3, std::int8_t)     \
    apply(bf16, 5, ::gnnd::bfloat16)
// clang-format on
/// Those, and what only files hold.
#define GNND_DTYPES(apply)    \
    GNND_VECTOR_DTYPES(apply) \
    apply(i32, 4, std::int32_t)

namespace gnnd {

/// IEEE 754 binary16, as raw bits.
struct half {
    std::uint16_t bits;  ///< sign, 5 bits of exponent, 10 of fraction
};

/// The upper half of a binary32, as raw bits: torch.bfloat16, ml_dtypes.bfloat16.
struct bfloat16 {
    std::uint16_t bits;  ///< sign, 8 bits of exponent, 7 of fraction
};

/// Element type of a component. The numbers are part of the graph file format.
enum class DType : std::uint32_t {
#define GNND_DTYPE(name, number, type) name = number,
    GNND_DTYPES(GNND_DTYPE)
#undef GNND_DTYPE
};

#define GNND_DTYPE(name, number, type) DType::name,
/// All element types.
inline constexpr std::array kDTypes{GNND_DTYPES(GNND_DTYPE)};
/// Those of vectors.
inline constexpr std::array kVectorDTypes{GNND_VECTOR_DTYPES(GNND_DTYPE)};
#undef GNND_DTYPE

/// Throws InvalidArgument that names the type and what vectors may consist of.
[[noreturn]] void throw_no_vectors(DType dtype);

/// Calls f with a component of vectors of this type: float(), half(), ... \throws InvalidArgument for others
template <class F>
constexpr decltype(auto) visit(DType dtype, F&& f) {
    switch (dtype) {
#define GNND_DTYPE(name, number, type) \
    case DType::name:                  \
        return f(type{});
        GNND_VECTOR_DTYPES(GNND_DTYPE)
#undef GNND_DTYPE
        case DType::i32:
            break;
    }
    throw_no_vectors(dtype);
}

/// The same for every type, ids' too. \throws InvalidArgument for a number that is none
template <class F>
decltype(auto) visit_any(DType dtype, F&& f) {
    if (dtype == DType::i32) return f(std::int32_t{});
    return visit(dtype, f);
}

/// True where components are integers of a byte, whose sums of products are exact.
inline bool is_byte(DType dtype) {
    return visit(dtype, [](auto component) { return sizeof(component) == 1; });
}

/// Bytes of one component. \throws InvalidArgument for a number that is no type
std::size_t size_of(DType dtype);

/// The name in files and on the command line, for instance "f32". \throws InvalidArgument for a number that is no type
std::string_view name_of(DType dtype);
/// \throws InvalidArgument that lists the known names
DType parse_dtype(std::string_view name);
/// Those of vectors as "a, b and c", for messages.
std::string_view vector_dtype_names();

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

/// Exact.
inline float to_float(bfloat16 b) {
    return std::bit_cast<float>(std::uint32_t(b.bits) << 16);
}

/// Round to nearest, ties to even; overflow gives infinity, NaN stays one.
bfloat16 to_bfloat16(float value);

}  // namespace gnnd
