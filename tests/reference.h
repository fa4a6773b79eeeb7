// SPDX-License-Identifier: MIT
#pragma once
/// \file reference.h
/// The naive implementation that everything else is compared with, and vectors to compare it on.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gnnd/graph.h"
#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::test {

using gnnd::kMetrics;
/// Of vectors.
inline constexpr auto kDTypes = kVectorDTypes;

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
            case DType::bf16:
                return put(to_bfloat16(value));
            case DType::i32:
                return put(static_cast<std::int32_t>(value));
        }
    }

  private:
    std::int64_t n_, d_;
    DType dtype_;
    std::vector<std::byte> bytes_;
};

/// Returns a size for a test that needs many objects: smaller under a sanitizer, which makes everything ten times
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
        float coordinates[8] = {};
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

/// All components of float32 vectors times a factor.
inline Vectors scaled(const VectorView& vectors, float factor) {
    Vectors scaled(vectors.n, vectors.d, vectors.dtype);
    std::vector<float> row(vectors.d);
    for (std::int64_t i = 0; i < vectors.n; ++i) {
        copy_as_f32(vectors, i, 1, row.data());
        for (std::int64_t c = 0; c < vectors.d; ++c) scaled.set(i, c, row[c] * factor);
    }
    return scaled;
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
    const auto sum = [d](const float* u, const float* v, auto term) {
        Reference sum{0, 0};
        std::int64_t c = 0;
#ifndef GNND_SANITIZED  // A sanitizer looks at each access to these sums, and takes twice as long with them.
        // Several sums at a time, since each addition to one has to wait for the one before: brute force is most of
        // what tests of the recall take.
        constexpr std::int64_t kSums = 8;
        double values[kSums] = {}, scales[kSums] = {};
        for (; c + kSums <= d; c += kSums)
            for (std::int64_t l = 0; l < kSums; ++l) {
                const double x = term(double(u[c + l]), double(v[c + l]));
                values[l] += x;
                scales[l] += std::abs(x);
            }
        for (std::int64_t l = 0; l < kSums; ++l) sum = {sum.value + values[l], sum.scale + scales[l]};
#endif
        for (; c < d; ++c) {
            const double x = term(double(u[c]), double(v[c]));
            sum.value += x;
            sum.scale += std::abs(x);
        }
        return sum;
    };
    const auto product = [](double x, double y) { return x * y; };
    switch (metric) {
        case Metric::L2:
            return sum(a, b, [](double x, double y) { return (x - y) * (x - y); });
        case Metric::InnerProduct:
            return sum(a, b, product);
        case Metric::Cosine: {
            const double norms = std::sqrt(sum(a, a, product).value * sum(b, b, product).value);
            const Reference products = sum(a, b, product);
            return {products.value / norms, products.scale / norms};
        }
        case Metric::L1:
            return sum(a, b, [](double x, double y) { return std::abs(x - y); });
        case Metric::Linf: {
            double largest = 0;
            for (std::int64_t c = 0; c < d; ++c) largest = std::max(largest, std::abs(double(a[c]) - double(b[c])));
            return {largest, largest};
        }
        case Metric::ChiSquare:
            return sum(a, b, [](double x, double y) { return x + y == 0 ? 0 : (x - y) * (x - y) / (x + y); });
    }
    return {NAN, NAN};
}

inline Reference reference_distance(const VectorView& vectors, Metric metric, std::int64_t i, std::int64_t j) {
    std::vector<float> a(vectors.d), b(vectors.d);
    copy_as_f32(vectors, i, 1, a.data());
    copy_as_f32(vectors, j, 1, b.data());
    return reference_distance(metric, a.data(), b.data(), vectors.d);
}

/// Beside the rounding of the sum, that of squares which are subnormal, of up to 512 components.
inline double tolerance(const Reference& reference) {
    return 2e-6 * reference.scale + 0x1p-140;
}

/// Returns a value by which the nearest sorts first.
inline double order_of(Metric metric, double value) {
    return is_similarity(metric) ? -value : value;
}

/// The k nearest neighbours of some objects by definition, in double precision: every object is compared with every
/// other one.
class Truth {
  public:
    Truth(const VectorView& vectors, Metric metric, std::vector<std::int32_t> objects, int k = 10)
        : metric_(metric),
          n_(vectors.n),
          d_(vectors.d),
          k_(k),
          rows_(std::size_t(n_ * d_)),
          objects_(std::move(objects)) {
        copy_as_f32(vectors, 0, n_, rows_.data());
        std::vector<double> orders;
        for (const std::int32_t object : objects_) {
            orders.clear();
            for (std::int32_t other = 0; other < n_; ++other)
                if (other != object) orders.push_back(order(object, other));
            const auto last = orders.begin() + std::min<std::ptrdiff_t>(k_, std::ssize(orders)) - 1;
            std::nth_element(orders.begin(), last, orders.end());
            limits_.push_back(*last);
        }
    }
    /// Of 400 objects, or as many as there are, spread over all [begin, begin + count).
    Truth(const VectorView& vectors, Metric metric, std::int64_t begin, std::int64_t count, int k = 10)
        : Truth(vectors, metric, spread(begin, count), k) {}
    Truth(const VectorView& vectors, Metric metric, int k = 10) : Truth(vectors, metric, 0, vectors.n, k) {}

    /// Recall@k: the share of a row's first k ids that are no farther than the k-th nearest object. What a graph says
    /// of distances does not matter, and neither the object itself nor an id that was there before counts.
    double recall_of(const KnnGraphView& graph) const {
        std::int64_t hits = 0;
        for (std::size_t i = 0; i < objects_.size(); ++i) {
            const std::int32_t* ids = graph.ids_of(objects_[i]);
            const std::set<std::int32_t> distinct(ids, ids + std::min<std::int64_t>(k_, graph.k));
            for (const std::int32_t id : distinct)
                hits += id >= 0 && id != objects_[i] && order(objects_[i], id) <= limits_[i];
        }
        return double(hits) / double(std::ssize(objects_) * std::min<std::int64_t>(k_, n_ - 1));
    }

  private:
    static std::vector<std::int32_t> spread(std::int64_t begin, std::int64_t count) {
        std::vector<std::int32_t> objects(std::size_t(std::min<std::int64_t>(400, count)));
        for (std::int64_t i = 0; i < std::ssize(objects); ++i)
            objects[std::size_t(i)] = std::int32_t(begin + i * count / std::ssize(objects));
        return objects;
    }
    double order(std::int32_t a, std::int32_t b) const {
        return order_of(
            metric_, reference_distance(metric_, &rows_[std::size_t(a * d_)], &rows_[std::size_t(b * d_)], d_).value);
    }

    Metric metric_;
    std::int64_t n_, d_;
    int k_;
    std::vector<float> rows_;
    std::vector<std::int32_t> objects_;
    std::vector<double> limits_;  ///< of each object: how far the k-th nearest one is
};

}  // namespace gnnd::test
