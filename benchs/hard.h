// SPDX-License-Identifier: MIT
#pragma once
/// \file hard.h
/// Vectors that are hard for builders of k-NN graphs, each in its own way: what was tuned on descriptors shows here.
/// Benchmarks and tests use the same.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/metric.h"

namespace gnnd::benchs {

/// Writes the next row.
using NextRow = std::function<void(float* row)>;

/// A kind of vectors.
struct HardSet {
    std::string name;
    std::int64_t d;  ///< if no other is asked for
    /// Gives what writes the n rows of d values, one after the other: of about -4 to 4 where nothing is to stick out.
    std::function<NextRow(std::int64_t n, std::int64_t d, std::mt19937& random)> start;
    Metric metric = Metric::L2;  ///< under which it is hard
};

inline std::vector<HardSet> hard_sets() {
    using Random = std::mt19937;
    const auto normal = [](Random& random) { return std::normal_distribution<float>()(random); };
    /// Independent components, the first of which is so many times as long.
    const auto gaussian = [=](float first) {
        return [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
            return [=, &random](float* x) {
                for (std::int64_t c = 0; c < d; ++c) x[c] = normal(random) * (c == 0 ? first : 1);
            };
        };
    };
    const auto uniform = [](std::int64_t, std::int64_t d, Random& random) -> NextRow {
        return [=, &random](float* x) {
            for (std::int64_t c = 0; c < d; ++c) x[c] = std::uniform_real_distribution<float>()(random);
        };
    };
    /// Each vector five times, one after the other, with noise.
    const auto copies = [=](float noise) {
        return [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
            return [=, &random, i = 0, row = std::vector<float>(std::size_t(d))](float* x) mutable {
                for (float& value : row)
                    if (i % 5 == 0) value = normal(random);
                ++i;
                for (std::int64_t c = 0; c < d; ++c) x[c] = row[std::size_t(c)] + noise * normal(random);
            };
        };
    };
    /// At most so many, of `size` vectors or more; their centres' components are 100 deviations large.
    const auto clusters = [=](std::int64_t size, std::int64_t most) {
        return [=](std::int64_t n, std::int64_t d, Random& random) -> NextRow {
            std::vector<float> centres(std::size_t(std::max<std::int64_t>(1, std::min(n / size, most)) * d));
            for (float& value : centres) value = 100 * normal(random);
            return [=, &random, i = std::size_t(0)](float* x) mutable {
                for (std::int64_t c = 0; c < d; ++c) x[c] = centres[i++ % centres.size()] + normal(random);
            };
        };
    };
    const auto walk = [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
        return [=, &random, window = std::vector<float>(std::size_t(d))](float* x) mutable {
            window.push_back(window.back() + normal(random));
            window.erase(window.begin());
            std::copy(window.begin(), window.end(), x);
        };
    };
    const auto lengths = [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
        return [=, &random](float* x) {
            const float length = std::exp(normal(random));
            for (std::int64_t c = 0; c < d; ++c) x[c] = length * normal(random);
        };
    };
    const auto sparse = [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
        return [=, &random](float* x) {
            for (std::int64_t c = 0; c < d; ++c) x[c] = random() % 25 == 0 ? std::abs(normal(random)) : 0.f;
        };
    };
    /// Every second vector so many times as long as the others.
    const auto two_lengths = [=](float factor) {
        return [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
            return [=, &random, i = 0](float* x) mutable {
                const float length = i++ % 2 == 0 ? factor : 1.f;
                for (std::int64_t c = 0; c < d; ++c) x[c] = length * normal(random);
            };
        };
    };
    /// Clusters of which few hold most vectors.
    const auto powers = [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
        constexpr std::size_t kClusters = 2000;
        std::vector<float> centres(kClusters * std::size_t(d));
        for (float& value : centres) value = 10 * normal(random);
        return [=, &random](float* x) {
            const double uniform = std::uniform_real_distribution<double>()(random);
            const auto cluster = std::size_t(uniform * uniform * uniform * uniform * kClusters);
            for (std::int64_t c = 0; c < d; ++c)
                x[c] = centres[cluster * std::size_t(d) + std::size_t(c)] + normal(random);
        };
    };
    /// Sums of few of 50 directions, and a little noise.
    const auto topics = [=](std::int64_t, std::int64_t d, Random& random) -> NextRow {
        constexpr std::size_t kTopics = 50;
        std::vector<float> directions(kTopics * std::size_t(d));
        for (float& value : directions) value = std::max(0.f, normal(random));
        return [=, &random](float* x) {
            for (std::int64_t c = 0; c < d; ++c) x[c] = 0.01f * normal(random);
            for (std::size_t topic = 0; topic < kTopics; ++topic) {
                const float weight = normal(random) - 1.5f;
                for (std::int64_t c = 0; weight > 0 && c < d; ++c)
                    x[c] += weight * directions[topic * std::size_t(d) + std::size_t(c)];
            }
        };
    };
    return {
        {"gauss", 64, gaussian(1)},
        {"column", 16, gaussian(1000)},
        {"clusters", 64, clusters(1, 100)},
        {"small", 32, clusters(10, 2000)},
        {"walk", 32, walk},
        {"plane", 2, uniform},
        {"line", 1, uniform},
        {"lengths", 64, lengths, Metric::InnerProduct},
        {"copies", 32, copies(0)},
        {"near", 32, copies(0.01f)},
        {"sparse", 500, sparse},
        {"scales", 64, two_lengths(0.001f)},
        {"core", 64, two_lengths(0.01f)},
        {"powers", 64, powers},
        {"topics", 256, topics, Metric::Cosine},
    };
}

/// \throws InvalidArgument that lists the known names
inline HardSet hard_set(const std::string& name) {
    std::string known;
    for (HardSet& set : hard_sets()) {
        if (set.name == name) return set;
        known += (known.empty() ? "" : ", ") + set.name;
    }
    throw InvalidArgument("no hard set '" + name + "', known are " + known);
}

/// \param d  0: the set's own, written
/// \return n x d
/// \throws InvalidArgument as hard_set()
inline std::vector<float> make_hard(const std::string& name, std::int64_t n, std::int64_t& d) {
    const HardSet set = hard_set(name);
    if (d == 0) d = set.d;
    std::vector<float> out(std::size_t(n * d));
    std::mt19937 random(1);
    const NextRow next = set.start(n, d, random);
    for (std::int64_t i = 0; i < n; ++i) next(out.data() + i * d);
    return out;
}

}  // namespace gnnd::benchs
