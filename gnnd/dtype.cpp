// SPDX-License-Identifier: MIT
#include "gnnd/dtype.h"

#include <string>

#include "gnnd/names.h"

namespace gnnd {

namespace {

#define GNND_DTYPE(name, number, type) {DType::name, #name},
constexpr NameTable<DType, kDTypes.size()> kNames{"dtype", {{GNND_DTYPES(GNND_DTYPE)}}};
#undef GNND_DTYPE

}  // namespace

std::size_t size_of(DType dtype) {
    switch (dtype) {
#define GNND_DTYPE(name, number, type) \
    case DType::name:                  \
        return sizeof(type);
        GNND_DTYPES(GNND_DTYPE)
#undef GNND_DTYPE
    }
    name_of(dtype);  // throws
    return 0;
}

std::string_view name_of(DType dtype) {
    return kNames.name_of(dtype);
}

DType parse_dtype(std::string_view name) {
    return kNames.parse(name);
}

std::string_view vector_dtype_names() {
    static const std::string names = [] {
        std::string text;
        for (const DType dtype : kVectorDTypes)
            text += (text.empty() ? "" : dtype == kVectorDTypes.back() ? " and " : ", ") + std::string(name_of(dtype));
        return text;
    }();
    return names;
}

void throw_no_vectors(DType dtype) {
    throw InvalidArgument("vectors of " + std::string(name_of(dtype)) + "; allowed are " +
                          std::string(vector_dtype_names()));
}

bfloat16 to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {std::uint16_t(bits >> 16 | 0x40u)};  // NaN: quiet, as it was
    return {std::uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

half to_half(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    std::uint32_t result;
    if (magnitude > 0x7f800000u) {  // NaN: the payload's upper bits, the quiet bit where those are all zero
        const std::uint32_t payload = magnitude >> 13 & 0x3ffu;
        result = 0x7c00u | (payload != 0 ? payload : 0x200u);
    } else if (magnitude >= 0x47800000u) {  // 65536 and more; what rounds up to it overflows in the last branch
        result = 0x7c00u;
    } else if (magnitude < 0x38800000u) {
        // Below 2^-14 the result is subnormal. The last bit of a float near 0.5 is worth as much as that of a
        // subnormal half, so the addition rounds at the right place.
        result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    } else {
        const std::uint32_t rebiased = magnitude - (112u << 23);
        result = (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13;
    }
    return {std::uint16_t(sign | result)};
}

}  // namespace gnnd
