// SPDX-License-Identifier: MIT
#pragma once
/// \file hard.h
/// Vectors that are hard for builders of k-NN graphs, each in its own way: what was tuned on descriptors shows here.

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gnnd/error.h"

namespace gnnd::benchs {

/// One row of d floats. Rows are made in order, from one source of random numbers.
using RowMaker = std::function<void(std::mt19937_64& random, std::int64_t row, std::int64_t d, float* out)>;

struct HardSet {
    std::int64_t d;  ///< if none is given
    RowMaker make;
};

/// The sets by their names.
inline const std::map<std::string, HardSet>& hard_sets() {
    using Random = std::mt19937_64;
    static const auto normal = [](Random& random) { return std::normal_distribution<float>()(random); };
    static const auto gauss = [](Random& random, std::int64_t, std::int64_t d, float* out) {
        for (std::int64_t c = 0; c < d; ++c) out[c] = normal(random);
    };
    /// A row that the previous ones are copies of, with noise.
    static const auto repeated = [](int times, float noise) {
        return
            [=, original = std::vector<float>()](Random& random, std::int64_t row, std::int64_t d, float* out) mutable {
                if (row % times == 0) {
                    original.resize(d);
                    gauss(random, row, d, original.data());
                }
                for (std::int64_t c = 0; c < d; ++c) out[c] = original[c] + (noise != 0 ? noise * normal(random) : 0);
            };
    };
    /// Far clusters: the centre's components are `far` deviations large.
    static const auto clusters = [](int count, float far) {
        return [=, centres = std::vector<float>()](Random& random, std::int64_t, std::int64_t d, float* out) mutable {
            while (centres.size() < std::size_t(count * d)) centres.push_back(far * normal(random));
            const float* centre = centres.data() + std::int64_t(random() % count) * d;
            for (std::int64_t c = 0; c < d; ++c) out[c] = centre[c] + normal(random);
        };
    };
    static const auto uniform = [](Random& random, std::int64_t, std::int64_t d, float* out) {
        for (std::int64_t c = 0; c < d; ++c) out[c] = std::uniform_real_distribution<float>()(random);
    };
    static const std::map<std::string, HardSet> sets = {
        {"gauss", {64, gauss}},
        {"column",
         {16,
          [](Random& random, std::int64_t row, std::int64_t d, float* out) {
              gauss(random, row, d, out);
              out[0] *= 1000;
          }}},
        {"clusters", {64, clusters(100, 100)}},
        {"small", {32, clusters(2000, 100)}},
        {"walk",
         {32,
          [path = std::vector<float>()](Random& random, std::int64_t row, std::int64_t d, float* out) mutable {
              while (path.size() < std::size_t(row + d))
                  path.push_back((path.empty() ? 0 : path.back()) + normal(random));
              std::copy_n(path.data() + row, d, out);
          }}},
        {"plane", {2, uniform}},
        {"line", {1, uniform}},
        {"lengths",
         {64,
          [](Random& random, std::int64_t row, std::int64_t d, float* out) {
              gauss(random, row, d, out);
              const float length = std::exp(normal(random));
              for (std::int64_t c = 0; c < d; ++c) out[c] *= length;
          }}},
        {"copies", {32, repeated(5, 0)}},
        {"near", {32, repeated(5, 0.01f)}},
        {"sparse",
         {500,
          [](Random& random, std::int64_t, std::int64_t d, float* out) {
              std::fill_n(out, d, 0.0f);
              for (int i = 0; i < 20; ++i) out[random() % d] = std::abs(normal(random));
          }}},
    };
    return sets;
}

/// \param out  n x d
/// \param d    0: the set's own
/// \throws InvalidArgument that lists the known names
inline std::vector<float> make_hard(const std::string& name, std::int64_t n, std::int64_t& d) {
    const auto found = hard_sets().find(name);
    if (found == hard_sets().end()) {
        std::string known;
        for (const auto& [each, set] : hard_sets()) known += (known.empty() ? "" : ", ") + each;
        throw InvalidArgument("no hard set '" + name + "', known are " + known);
    }
    if (d == 0) d = found->second.d;
    std::vector<float> out(std::size_t(n * d));
    std::mt19937_64 random(1);
    RowMaker make = found->second.make;
    for (std::int64_t i = 0; i < n; ++i) make(random, i, d, out.data() + i * d);
    return out;
}

}  // namespace gnnd::benchs
