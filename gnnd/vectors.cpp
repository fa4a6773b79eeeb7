// SPDX-License-Identifier: MIT
#include "gnnd/vectors.h"

#include <algorithm>
#include <string>

#include "gnnd/error.h"

namespace gnnd {

namespace {

float widen(half value) {
    return to_float(value);
}
float widen(bfloat16 value) {
    return to_float(value);
}
template <class T>
float widen(T value) {
    return float(value);
}

}  // namespace

void copy_as_f32(const VectorView& vectors, std::int64_t begin, std::int64_t count, float* out) {
    if (begin < 0 || count < 0 || begin > vectors.n - count)
        throw InvalidArgument("copy_as_f32: rows " + std::to_string(begin) + " + " + std::to_string(count) +
                              " are outside of 0 to " + std::to_string(vectors.n));
    visit(vectors.dtype, [&](auto component) {
        using T = decltype(component);
        for (std::int64_t i = begin; i < begin + count; ++i, out += vectors.d) {
            const T* row = reinterpret_cast<const T*>(vectors.row(i));
            std::transform(row, row + vectors.d, out, [](T value) { return widen(value); });
        }
    });
}

}  // namespace gnnd
