#include "gnnd/dtype.h"

#include "gnnd/names.h"

namespace gnnd {

namespace {

constexpr NameTable<DType, 5> kNames{
    "dtype", {{{DType::f32, "f32"}, {DType::f16, "f16"}, {DType::u8, "u8"}, {DType::i8, "i8"}, {DType::i32, "i32"}}}};

}  // namespace

std::size_t size_of(DType dtype) {
    switch (dtype) {
        case DType::f32:
        case DType::i32:
            return 4;
        case DType::f16:
            return 2;
        case DType::u8:
        case DType::i8:
            return 1;
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
