#pragma once
/// \file reference.h
/// The naive implementation that everything else is compared with, and vectors to compare it on.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::test {

/// Vectors that own their memory.
class Vectors {
  public:
    Vectors(std::int64_t n, std::int64_t d, DType dtype)
        : n_(n), d_(d), dtype_(dtype), bytes_(std::size_t(n * d) * size_of(dtype)) {}
    VectorView view() const { return {bytes_.data(), n_, d_, dtype_, 0}; }
    operator VectorView() const { return view(); }

    void set(std::int64_t i, std::int64_t c, float value) {
        std::byte* at = bytes_.data() + std::size_t(i * d_ + c) * size_of(dtype_);
        const auto put = [at](auto x) { std::memcpy(at, &x, sizeof x); };
        switch (dtype_) {
            case DType::f32:
                return put(value);
            case DType::f16:
                return put(to_half(value));
            case DType::u8:
                return put(static_cast<std::uint8_t>(value));
            case DType::i8:
                return put(static_cast<std::int8_t>(value));
            case DType::i32:
                return put(static_cast<std::int32_t>(value));
        }
    }

  private:
    std::int64_t n_, d_;
    DType dtype_;
    std::vector<std::byte> bytes_;
};

/// How many of so many objects a test takes that needs many: fewer under a sanitizer, which makes everything ten times
/// as slow and looks for other mistakes than a low recall.
constexpr std::int64_t sized(std::int64_t n) {
#ifdef GNND_SANITIZED
    return n / 4;
#else
    return n;
#endif
}

/// Random vectors near a surface of a few dimensions, so that neighbours mean something; without negative components
/// if asked. The range suits the type.
inline Vectors random_vectors(std::int64_t n, std::int64_t d, DType dtype, bool nonnegative = false,
                              unsigned seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const int intrinsic = int(std::min<std::int64_t>(d, 8));
    std::vector<float> basis(intrinsic * d);
    for (float& b : basis) b = normal(random) / std::sqrt(float(intrinsic));
    Vectors vectors(n, d, dtype);
    for (std::int64_t i = 0; i < n; ++i) {
        float coordinates[8];
        for (int l = 0; l < intrinsic; ++l) coordinates[l] = normal(random);
        for (std::int64_t c = 0; c < d; ++c) {
            float x = 0.05f * normal(random);
            for (int l = 0; l < intrinsic; ++l) x += coordinates[l] * basis[l * d + c];
            if (dtype == DType::u8) x = std::clamp(std::round(128 + 40 * x), 0.f, 255.f);
            if (dtype == DType::i8) x = std::clamp(std::round(40 * x), nonnegative ? 0.f : -128.f, 127.f);
            if (nonnegative) x = std::abs(x);
            vectors.set(i, c, x);
        }
    }
    return vectors;
}

/// Random vectors that the metric is defined for.
inline Vectors vectors_for(Metric metric, std::int64_t n, std::int64_t d, DType dtype) {
    Vectors vectors = random_vectors(n, d, dtype, metric == Metric::ChiSquare);
    if (metric == Metric::Cosine)
        for (std::int64_t i = 0; i < n; ++i) vectors.set(i, 0, 1);  // no zero vectors
    return vectors;
}

/// A value computed in double precision, and the size of what was added up for it: its rounding error in float32 is a
/// small multiple of scale.
struct Reference {
    double value, scale;
};

inline Reference reference_distance(Metric metric, const float* a, const float* b, std::int64_t d) {
    double sum = 0, scale = 0, largest = 0, aa = 0, bb = 0;
    const auto add = [&](double term) {
        sum += term;
        scale += std::abs(term);
    };
    for (std::int64_t c = 0; c < d; ++c) {
        const double x = a[c], y = b[c];
        aa += x * x;
        bb += y * y;
        switch (metric) {
            case Metric::L2:
                add((x - y) * (x - y));
                break;
            case Metric::InnerProduct:
            case Metric::Cosine:
                add(x * y);
                break;
            case Metric::L1:
                add(std::abs(x - y));
                break;
            case Metric::Linf:
                largest = std::max(largest, std::abs(x - y));
                break;
            case Metric::ChiSquare:
                add(x + y == 0 ? 0 : (x - y) * (x - y) / (x + y));
                break;
        }
    }
    if (metric == Metric::Linf) return {largest, largest};
    if (metric == Metric::Cosine) return {sum / std::sqrt(aa * bb), scale / std::sqrt(aa * bb)};
    return {sum, scale};
}

inline Reference reference_distance(const VectorView& vectors, Metric metric, std::int64_t i, std::int64_t j) {
    std::vector<float> a(vectors.d), b(vectors.d);
    copy_as_f32(vectors, i, 1, a.data());
    copy_as_f32(vectors, j, 1, b.data());
    return reference_distance(metric, a.data(), b.data(), vectors.d);
}

inline double tolerance(const Reference& reference) {
    return 2e-6 * reference.scale;
}

/// What sorts first is nearest.
inline double order_of(Metric metric, double value) {
    return is_similarity(metric) ? -value : value;
}

}  // namespace gnnd::test
