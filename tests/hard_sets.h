// SPDX-License-Identifier: MIT
#pragma once
/// \file hard_sets.h
/// Vectors whose neighbours are harder to find than those of real descriptors.

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/reference.h"

namespace gnnd::test {

/// A kind of vectors. `fill` writes one after the other.
struct HardSet {
    std::string name;
    std::int64_t d;
    /// Gives a function that writes the next of n vectors, d values of about -4 to 4 where nothing is to stick out.
    std::function<std::function<void(float*)>(std::int64_t n, std::mt19937&)> start;
    Metric metric = Metric::L2;  ///< under which it is hard
};

inline std::vector<HardSet> hard_sets() {
    using Next = std::function<void(float*)>;
    const auto normal = [](std::mt19937& random) { return std::normal_distribution<float>()(random); };
    const auto uniform = [](std::mt19937& random) { return std::uniform_real_distribution<float>()(random); };
    const auto gaussian = [=](int d) {
        return [=](std::int64_t, std::mt19937& random) -> Next {
            return [=, &random](float* x) {
                for (int c = 0; c < d; ++c) x[c] = normal(random);
            };
        };
    };
    /// Each vector so many times, one after the other, with noise.
    const auto copies = [=](int d, int times, float noise) {
        return [=](std::int64_t, std::mt19937& random) -> Next {
            return [=, &random, i = 0, row = std::vector<float>(std::size_t(d))](float* x) mutable {
                for (float& value : row)
                    if (i % times == 0) value = normal(random);
                ++i;
                for (int c = 0; c < d; ++c) x[c] = row[std::size_t(c)] + noise * normal(random);
            };
        };
    };
    const auto clusters = [=](int d, std::int64_t size, std::int64_t most) {
        return [=](std::int64_t n, std::mt19937& random) -> Next {
            std::vector<float> centres(std::size_t(std::max<std::int64_t>(1, std::min(n / size, most)) * d));
            for (float& value : centres) value = 100 * normal(random);
            return [=, &random, i = std::size_t(0)](float* x) mutable {
                for (int c = 0; c < d; ++c) x[c] = centres[i++ % centres.size()] + normal(random);
            };
        };
    };
    const auto scaled = [=](int d, float scale) {
        return [=](std::int64_t, std::mt19937& random) -> Next {
            return [=, &random](float* x) {
                for (int c = 0; c < d; ++c) x[c] = normal(random) * (c == 0 ? scale : 1);
            };
        };
    };
    return {
        {"gaussian32", 32, gaussian(32)},
        {"gaussian64", 64, gaussian(64)},
        {"gaussian128", 128, gaussian(128)},
        {"one_long_column", 16, scaled(16, 1000)},
        {"far_clusters", 64, clusters(64, 1, 100)},
        {"far_small_clusters", 32, clusters(32, 10, 1 << 20)},
        {"random_walk", 32,
         [=](std::int64_t, std::mt19937& random) -> Next {
             return [=, &random, window = std::vector<float>(32)](float* x) mutable {
                 window.erase(window.begin());
                 window.push_back(window.back() + normal(random));
                 std::copy(window.begin(), window.end(), x);
             };
         }},
        {"plane", 2,
         [=](std::int64_t, std::mt19937& random) -> Next {
             return [=, &random](float* x) { x[0] = uniform(random), x[1] = uniform(random); };
         }},
        {"line", 1,
         [=](std::int64_t, std::mt19937& random) -> Next {
             return [=, &random](float* x) { x[0] = uniform(random); };
         }},
        {"lognormal_lengths", 64,
         [=](std::int64_t, std::mt19937& random) -> Next {
             return [=, &random](float* x) {
                 const float length = std::exp(normal(random));
                 for (int c = 0; c < 64; ++c) x[c] = length * normal(random);
             };
         },
         Metric::InnerProduct},
        {"copies", 32, copies(32, 5, 0)},
        {"near_copies", 64, copies(64, 5, 0.01f)},
        {"sparse", 200,
         [=](std::int64_t, std::mt19937& random) -> Next {
             return [=, &random](float* x) {
                 for (int c = 0; c < 200; ++c) x[c] = random() % 25 == 0 ? std::abs(normal(random)) : 0.f;
             };
         }},
    };
}

/// n of them. Bytes are scaled into their range; where components are not to be negative they are made so.
inline Vectors vectors_of(const HardSet& set, std::int64_t n, DType dtype, bool nonnegative = false) {
    std::mt19937 random(5);
    const auto next = set.start(n, random);
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
