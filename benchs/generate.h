// SPDX-License-Identifier: MIT
#pragma once
/// \file generate.h
/// Vectors for measuring at any size, made on the host or on a device (generate_on_device.h). Row i depends on the
/// seed, i and the parameters alone, so any rows [begin, begin + count) can be made without the rest.

#include <cmath>
#include <cstdint>

#include "gnnd/metric.h"

namespace gnnd::benchs {

/// Random numbers that can be asked for in any order: number i of SplitMix64 started at a key made of (seed, purpose,
/// row).
class Draws {
  public:
    enum Purpose { kMix, kLatent, kFrequency, kPhase, kWeight };

    GNND_HOST_DEVICE Draws(std::uint64_t seed, Purpose purpose, std::uint64_t row)
        : key_(number(number(seed, purpose), row)) {}

    /// Uniform in [0, bound).
    GNND_HOST_DEVICE std::uint32_t below(std::uint32_t bound, std::uint64_t i) const {
        return std::uint32_t(((number(key_, i) >> 32) * bound) >> 32);
    }
    /// Uniform in [0, 1).
    GNND_HOST_DEVICE float uniform(std::uint64_t i) const { return kUnit * float(number(key_, i) >> 40); }
    /// Normal, deviation 1 (Box and Muller).
    GNND_HOST_DEVICE float normal(std::uint64_t i) const {
        const std::uint64_t bits = number(key_, i);
        const float radius = std::sqrt(-2 * std::log(kUnit * float((bits >> 40) + 1)));
        return radius * std::cos(kTurn * kUnit * float(bits & 0xffffff));
    }

    static constexpr float kTurn = 6.2831853f;

  private:
    static constexpr float kUnit = 1.0f / (1 << 24);

    GNND_HOST_DEVICE static std::uint64_t number(std::uint64_t key, std::uint64_t i) {
        std::uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::uint64_t key_;
};

/// More rows like those of a base set: y = x_i + a (x_j - x_i) + b (x_l - x_i), i random, j and l random among i's ten
/// nearest, a and b normal with deviation 0.5, rounded and clamped to 0..255.
struct Mix {
    const std::uint8_t* base;  ///< n0 x d
    const std::int32_t* ids;   ///< n0 x k, row i: the rows nearest to i, nearest first, the first ten all in [0, n0)
    std::int64_t n0;           ///< 11 .. 2^31 - 1
    std::int64_t d;
    std::int64_t k;  ///< at least 10
    std::uint64_t seed;

    static constexpr int kNearest = 10;

    /// The numbers that one row is made of.
    struct Recipe {
        std::int64_t i, j, l;
        float a, b;
    };

    GNND_HOST_DEVICE Recipe recipe(std::int64_t row) const {
        const Draws draws(seed, Draws::kMix, row);
        const std::int64_t i = draws.below(std::uint32_t(n0), 0);
        const std::int32_t* near = ids + i * k;
        return {i, near[draws.below(kNearest, 1)], near[draws.below(kNearest, 2)], 0.5f * draws.normal(3),
                0.5f * draws.normal(4)};
    }

    /// Component c of the row.
    GNND_HOST_DEVICE std::uint8_t value(const Recipe& r, std::int64_t c) const {
        const float x = base[r.i * d + c];
        const float y = x + r.a * (base[r.j * d + c] - x) + r.b * (base[r.l * d + c] - x);
        return std::uint8_t(std::rint(y < 0 ? 0 : y > 255 ? 255 : y));
    }
};

/// A smooth random manifold of m dimensions in d: z uniform in [0, 1)^m, features f_j(z) = cos(w_j . z + phase_j), x =
/// A f. Another d keeps the z and the components that both have. Only with d > 2m can the map be one to one.
struct Manifold {
    std::int64_t d;  ///< at least 1
    int m;           ///< 1 .. kMaxM
    std::uint64_t seed;

    static constexpr int kFeatures = 128;
    static constexpr int kMaxM = kFeatures / 2;
    /// The deviation of w's components. Large enough to bend the cube, so that its borders do not rule what is near:
    /// for m = 20, d = 50 or 960 and 20,000 to 1,000,000 rows the estimated dimension (Levina and Bickel, 100
    /// neighbours) is 19 to 21, while z itself measures 15. Small enough that w . z stays within a turn for most z.
    static constexpr float kFrequency = 1.1f;

    /// All random parameters, the same for every row, stand in one array: w as m x kFeatures, the phases, A as
    /// kFeatures x d.
    GNND_HOST_DEVICE std::int64_t parameters() const { return kFeatures * (m + 1 + d); }
    GNND_HOST_DEVICE std::int64_t weights_at() const { return kFeatures * (m + 1); }
    GNND_HOST_DEVICE float parameter(std::int64_t at) const {
        if (at >= weights_at()) {
            at -= weights_at();
            return std::sqrt(2.0f / kFeatures) * Draws(seed, Draws::kWeight, at % d).normal(at / d);
        }
        const std::int64_t feature = at % kFeatures, t = at / kFeatures;
        if (t == m) return Draws::kTurn * Draws(seed, Draws::kPhase, feature).uniform(0);
        return kFrequency * Draws(seed, Draws::kFrequency, feature).normal(t);
    }

    /// Component t of the row's z.
    GNND_HOST_DEVICE float latent(std::int64_t row, int t) const { return Draws(seed, Draws::kLatent, row).uniform(t); }

    /// Feature j of a z.
    GNND_HOST_DEVICE float feature(const float* parameters, const float* z, int j) const {
        float angle = parameters[m * kFeatures + j];
        for (int t = 0; t < m; ++t) angle += parameters[t * kFeatures + j] * z[t];
        return std::cos(angle);
    }

    /// One whole row, x[0 .. d).
    GNND_HOST_DEVICE void row(const float* parameters, std::int64_t row, float* x) const {
        float z[kMaxM], features[kFeatures];
        for (int t = 0; t < m; ++t) z[t] = latent(row, t);
        for (int j = 0; j < kFeatures; ++j) features[j] = feature(parameters, z, j);
        for (std::int64_t c = 0; c < d; ++c) x[c] = 0;
        for (int j = 0; j < kFeatures; ++j)
            for (std::int64_t c = 0; c < d; ++c) x[c] += parameters[weights_at() + j * d + c] * features[j];
    }
};

}  // namespace gnnd::benchs
