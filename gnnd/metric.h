// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file metric.h
/// The metrics. To add one: a struct in `metrics` and its line in GNND_METRICS; where it is no product, its name in the
/// list of gnnd/CMakeLists.txt too, for its CUDA kernels are compiled in a file of their own. Names, checks, engines
/// and FAISS's adapters follow from the struct. `accumulate` is compiled for float, for the SIMD vectors of the CPU
/// kernels and for the GPU.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Marks what is compiled for the GPU, too.
#ifdef __CUDACC__
#define GNND_HOST_DEVICE __host__ __device__
#else
#define GNND_HOST_DEVICE
#endif

/// All metrics: the struct in `metrics`, and the number in files, which never changes. Numbers follow each other.
// clang-format off
#define GNND_METRICS(apply) \
    apply(L2, 0)            \
    apply(InnerProduct, 1)  \
    apply(Cosine, 2)        \
    apply(L1, 3)            \
    apply(Linf, 4)          \
    apply(ChiSquare, 5)
// clang-format on

namespace gnnd {

/// The distance or similarity that orders the neighbours; the structs of `metrics` document them.
enum class Metric : std::uint32_t {
#define GNND_METRIC(name, number) name = number,
    GNND_METRICS(GNND_METRIC)
#undef GNND_METRIC
};

/// Each metric's arithmetic and traits.
///  - `accumulate(acc, a, b)` adds one pair of components; acc starts at zero. T is float or int, or a vector type that
///    brings its own `product`, `add_product`, `absolute`, `larger` and `ratio`. For T of 16-bit integers A holds
///    32-bit sums.
///  - `combine(x, y)` joins two partial results.
/// Two components of zero must leave acc as it is: rows are padded with zeros. A value of 0 has no sign, whatever signs
/// the components' zeros have: what is nearer is asked of bits, too.
namespace metrics {

/// a b.
GNND_HOST_DEVICE inline float product(float a, float b) {
    return a * b;
}
/// sum + a b.
GNND_HOST_DEVICE inline float add_product(float sum, float a, float b) {
    return sum + a * b;
}
/// sum + a b.
GNND_HOST_DEVICE inline int add_product(int sum, int a, int b) {
    return sum + a * b;
}
/// |a|.
GNND_HOST_DEVICE inline float absolute(float a) {
    return a < 0 ? -a : a;
}
/// The larger one; of two equal ones, as zeros of either sign are, the first.
GNND_HOST_DEVICE inline float larger(float a, float b) {
    return a < b ? b : a;
}
/// a / b, and 0 where b is 0.
GNND_HOST_DEVICE inline float ratio(float a, float b) {
    return b == 0 ? 0 : a / b;
}

/// The traits of most metrics, and partial results that add up.
struct Sum {
    static constexpr bool is_product = false;             ///< sums of products: on tensor cores, bytes as integers
    static constexpr bool similarity = false;             ///< larger is nearer; backends order by the negated value
    static constexpr bool normalized = false;             ///< divided by both norms; zero vectors are refused
    static constexpr bool translation_invariant = false;  ///< d(a + t, b + t) = d(a, b)
    static constexpr bool nonnegative = false;            ///< defined for components >= 0 only, others are refused
    static constexpr int degree = 1;                      ///< d(s a, s b) = s^degree d(a, b) for s > 0
    static constexpr int faiss_metric = -1;               ///< the number of its faiss::MetricType; -1: there is none
    static constexpr float best = 0;  ///< the value of two equal vectors; infinite where their length decides it
    /// Each component takes a division, as `ratio` does, which GPUs take many instructions for.
    static constexpr bool divides = false;
    /// A distance of 0 for equal vectors, from the metric's value: see true_distances() of gnnd/operations.h.
    GNND_HOST_DEVICE static float true_distance(float value) { return value; }
    template <class A>
    GNND_HOST_DEVICE static A combine(A x, A y) {
        return x + y;
    }
};

/// Squared Euclidean distance, as FAISS's METRIC_L2.
struct L2 : Sum {
    static constexpr std::string_view name = "l2";
    static constexpr bool is_product = true, translation_invariant = true;
    static constexpr int degree = 2, faiss_metric = 1;
    /// The Euclidean distance.
    GNND_HOST_DEVICE static float true_distance(float value) { return std::sqrt(value); }
    template <class A, class T>
    GNND_HOST_DEVICE static A accumulate(A acc, T a, T b) {
        const T difference = a - b;
        return add_product(acc, difference, difference);
    }
};

/// Similarity, as FAISS's METRIC_INNER_PRODUCT.
struct InnerProduct : Sum {
    static constexpr std::string_view name = "ip";
    static constexpr bool is_product = true, similarity = true;
    static constexpr int degree = 2, faiss_metric = 0;
    static constexpr float best = HUGE_VALF;
    /// The cosine distance, for vectors of length 1. Rounding may take the value past 1.
    GNND_HOST_DEVICE static float true_distance(float value) { return value < 1 ? 1 - value : 0; }
    template <class A, class T>
    GNND_HOST_DEVICE static A accumulate(A acc, T a, T b) {
        return add_product(acc, a, b);
    }
};

/// Similarity: the inner product of the normalised vectors, from -1 to 1 but for rounding. FAISS has it as the
/// inner product of vectors that were normalised before.
struct Cosine : InnerProduct {
    static constexpr std::string_view name = "cosine";
    static constexpr bool normalized = true;
    static constexpr int degree = 0, faiss_metric = -1;
    static constexpr float best = 1;
};

/// Sum of absolute differences.
struct L1 : Sum {
    static constexpr std::string_view name = "l1";
    static constexpr bool translation_invariant = true;
    static constexpr int faiss_metric = 2;
    template <class T>
    GNND_HOST_DEVICE static T accumulate(T acc, T a, T b) {
        return acc + absolute(a - b);
    }
};

/// Largest absolute difference.
struct Linf : Sum {
    static constexpr std::string_view name = "linf";
    static constexpr bool translation_invariant = true;
    static constexpr int faiss_metric = 3;
    template <class T>
    GNND_HOST_DEVICE static T accumulate(T acc, T a, T b) {
        return larger(acc, absolute(a - b));
    }
    template <class A>
    GNND_HOST_DEVICE static A combine(A x, A y) {
        return larger(x, y);
    }
};

/// Sum of (a - b)^2 / (a + b), 0 / 0 counted as 0: the paper's K-Square, which is the symmetric chi-squared distance of
/// histograms without a factor (some halve it, some double it). The quotient comes before the product, since the square
/// of what is below 1e-23 is 0 in float32.
struct ChiSquare : Sum {
    static constexpr std::string_view name = "chi2";
    static constexpr bool nonnegative = true, divides = true;
    template <class T>
    GNND_HOST_DEVICE static T accumulate(T acc, T a, T b) {
        const T difference = a - b;
        return acc + product(difference, ratio(difference, a + b));
    }
};

}  // namespace metrics

/// Throws InvalidArgument that tells the number.
[[noreturn]] void throw_unknown(Metric metric);

/// Calls f with the metric's struct. \throws InvalidArgument for a number that is none
template <class F>
constexpr decltype(auto) visit(Metric metric, F&& f) {
    switch (metric) {
#define GNND_METRIC(name, number) \
    case Metric::name:            \
        return f(metrics::name{});
        GNND_METRICS(GNND_METRIC)
#undef GNND_METRIC
    }
    throw_unknown(metric);
}

#define GNND_METRIC(name, number) Metric::name,
/// All metrics, by their numbers.
inline constexpr std::array kMetrics{GNND_METRICS(GNND_METRIC)};
#undef GNND_METRIC

/// True where larger values are nearer (inner product, cosine). \throws InvalidArgument for a number that is none
inline bool is_similarity(Metric metric) {
    return visit(metric, [](auto m) { return m.similarity; });
}

/// True where values follow from sums of products: l2, ip and cosine. \throws InvalidArgument for a number that is none
inline bool is_product(Metric metric) {
    return visit(metric, [](auto m) { return m.is_product; });
}

/// True where values are divided by both norms: cosine, which is ip of vectors of norm 1.
/// \throws InvalidArgument for a number that is none
inline bool is_normalized(Metric metric) {
    return visit(metric, [](auto m) { return m.normalized; });
}

/// True where neighbours follow from products of components as they are: l2 and ip.
/// \throws InvalidArgument for a number that is none
inline bool is_unnormalized_product(Metric metric) {
    return is_product(metric) && !is_normalized(metric);
}

/// True where moving all vectors by the same one leaves all distances as they are: l2, l1 and linf.
/// \throws InvalidArgument for a number that is none
inline bool is_translation_invariant(Metric metric) {
    return visit(metric, [](auto m) { return m.translation_invariant; });
}

/// Largest dimension where sums of products of bytes are computed in int32, which holds 33,025 of them.
inline constexpr std::int64_t kMaxIntegerDim = 32768;

/// The name on the command line and in files, for instance "l2". \throws InvalidArgument for a number that is none
std::string_view name_of(Metric metric);

/// The inverse of name_of; throws InvalidArgument that lists the known names.
Metric parse_metric(std::string_view name);

/// The value of two equal vectors, which no other is better than: 0, 1 for cosine, +inf for inner products, which grow
/// with the vectors' lengths. \throws InvalidArgument for a number that is none
inline float best_value(Metric metric) {
    return visit(metric, [](auto m) { return m.best; });
}

/// The end of a row where fewer than k neighbours exist: +inf, -inf for similarities (FAISS's convention).
/// \throws InvalidArgument for a number that is none
inline float worst_value(Metric metric) {
    return is_similarity(metric) ? -INFINITY : INFINITY;
}

}  // namespace gnnd
