// SPDX-License-Identifier: MIT
#pragma once
/// \file hard_sets.h
/// Vectors whose neighbours are harder to find than those of real descriptors, of any type.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "benchs/hard.h"
#include "tests/reference.h"

namespace gnnd::test {

using benchs::HardSet;

/// Those of the benchmarks, in dimensions that make small ones hard.
inline std::vector<HardSet> hard_sets() {
    constexpr std::pair<const char*, int> kSets[] = {
        {"gauss", 32},   {"gauss", 64},  {"gauss", 128}, {"column", 16},  {"clusters", 64}, {"small", 32},
        {"walk", 32},    {"plane", 2},   {"line", 1},    {"lengths", 64}, {"copies", 32},   {"near", 64},
        {"sparse", 200}, {"scales", 64}, {"core", 64},   {"powers", 32},  {"topics", 100}};
    std::vector<HardSet> sets;
    for (const auto& [name, d] : kSets) {
        HardSet set = benchs::hard_set(name);
        set.name += std::to_string(d);
        set.d = d;
        sets.push_back(std::move(set));
    }
    return sets;
}

/// n of them. Bytes are scaled into their range; where components are not to be negative they are made so.
inline Vectors vectors_of(const HardSet& set, std::int64_t n, DType dtype, bool nonnegative = false) {
    std::mt19937 random(5);
    const auto next = set.start(n, set.d, random);
    std::vector<float> row(std::size_t(set.d));
    Vectors vectors(n, set.d, dtype);
    for (std::int64_t i = 0; i < n; ++i) {
        next(row.data());
        for (std::int64_t c = 0; c < set.d; ++c) {
            float x = nonnegative ? std::abs(row[std::size_t(c)]) : row[std::size_t(c)];
            if (dtype == DType::u8) x = std::clamp(std::round(128 + 30 * x), 0.f, 255.f);
            if (dtype == DType::i8) x = std::clamp(std::round(30 * x), -128.f, 127.f);
            vectors.set(i, c, x);
        }
    }
    return vectors;
}

}  // namespace gnnd::test
