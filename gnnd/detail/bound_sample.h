// SPDX-License-Identifier: MIT
#pragma once
/// \file bound_sample.h
/// Bounds for lists that are empty, from a sample of one object in so many. How many of an object's k nearest the
/// sample holds has a binomial distribution whatever the data: the sample's object of a rank that this number rarely
/// reaches lies behind them, and not many more than these lie before it.

#include <cstdint>

namespace gnnd::detail {

/// One object of so many is in the sample. Few neighbours need a small one, for what it costs grows with n^2 / stride;
/// of many it should hold about twenty at most, for their rank is looked for among as many maxima as there are.
/// Measured on an H200 (benchs/NOTEBOOK.md): 4, 8 and 16.
inline std::uint32_t sample_stride(int k) {
    constexpr int kFew = 16;
    constexpr double kMostExpected = 20;
    std::uint32_t stride = k <= kFew ? 16 : 8;
    while ((k + 1) / double(stride) > kMostExpected) stride *= 2;
    return stride;
}

/// The least rank that the sample's part of the k nearest and the object itself reaches with a probability of 0.004 at
/// most. That times the stride is how many are expected to lie within the bound.
std::uint32_t sample_rank(int k, std::uint32_t stride);

}  // namespace gnnd::detail
