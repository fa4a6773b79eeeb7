// SPDX-License-Identifier: MIT
#pragma once
/// \file converted.h
/// Vectors as those of another type.

#include <vector>

#include "tests/reference.h"

namespace gnnd::test {

/// The same numbers in another type.
inline Vectors converted(const VectorView& from, DType dtype) {
    Vectors to(from.n, from.d, dtype);
    std::vector<float> row(from.d);
    for (std::int64_t i = 0; i < from.n; ++i) {
        copy_as_f32(from, i, 1, row.data());
        for (std::int64_t c = 0; c < from.d; ++c) to.set(i, c, row[c]);
    }
    return to;
}

}  // namespace gnnd::test
