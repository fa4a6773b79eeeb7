#include "gnnd/vectors.h"

#include <algorithm>
#include <string>

#include "gnnd/error.h"

namespace gnnd {

namespace {

template <class T, class Convert>
void copy_rows(const VectorView& vectors, std::int64_t begin, std::int64_t count, float* out, Convert convert) {
    for (std::int64_t i = begin; i < begin + count; ++i, out += vectors.d) {
        const T* row = reinterpret_cast<const T*>(vectors.row(i));
        std::transform(row, row + vectors.d, out, convert);
    }
}

}  // namespace

void copy_as_f32(const VectorView& vectors, std::int64_t begin, std::int64_t count, float* out) {
    if (begin < 0 || count < 0 || begin > vectors.n - count)
        throw InvalidArgument("copy_as_f32: rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(vectors.n));
    const auto widen = [](auto value) { return float(value); };
    switch (vectors.dtype) {
        case DType::f32:
            return copy_rows<float>(vectors, begin, count, out, widen);
        case DType::f16:
            return copy_rows<half>(vectors, begin, count, out, to_float);
        case DType::u8:
            return copy_rows<std::uint8_t>(vectors, begin, count, out, widen);
        case DType::i8:
            return copy_rows<std::int8_t>(vectors, begin, count, out, widen);
        case DType::i32:
            break;
    }
    throw InvalidArgument("copy_as_f32: components are " + std::string(name_of(vectors.dtype)) +
                          ", expected f32, f16, u8 or i8");
}

}  // namespace gnnd
