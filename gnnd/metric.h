#pragma once
/// \file metric.h
/// The metrics. To add one: a struct in `metrics`, a value in `Metric`, a line in `visit`. Every backend takes its
/// arithmetic from here: `accumulate` is compiled for float, for the SIMD vectors of the CPU kernels and for the GPU.

#include <cmath>
#include <cstdint>
#include <string_view>

#ifdef __CUDACC__
#define GNND_HOST_DEVICE __host__ __device__
#else
#define GNND_HOST_DEVICE
#endif

namespace gnnd {

/// Which distance or similarity orders the neighbours. The numeric values are part of the graph file format and
/// never change.
enum class Metric : std::uint32_t {
    L2 = 0,            ///< squared Euclidean distance, as FAISS's METRIC_L2
    InnerProduct = 1,  ///< similarity: larger is nearer, as FAISS's METRIC_INNER_PRODUCT
    Cosine = 2,        ///< similarity: inner product of the normalised vectors; zero vectors are refused
    L1 = 3,            ///< sum of absolute differences
    Linf = 4,          ///< largest absolute difference
    ChiSquare = 5,     ///< sum of (a-b)^2/(a+b), 0/0 counted as 0; the paper's K-Square; needs components >= 0
};

/// The arithmetic of the metrics, one struct each.
///  - `accumulate(acc, a, b)` adds one pair of components; acc starts at zero. T is float or int, or a vector type that
///    brings its own `product`, `absolute`, `larger` and `ratio`. For T of 16-bit integers A holds 32-bit sums.
///  - `combine(x, y)` joins two partial results.
///  - `exact_in_integers`: u8 and i8 components may stay integers in `accumulate`.
///  - `similarity`: larger is nearer; backends order by the negated value.
///  - `normalized`: the result is divided by the Euclidean norms of both vectors.
namespace metrics {

GNND_HOST_DEVICE inline float product(float a, float b) {
    return a * b;
}
GNND_HOST_DEVICE inline int product(int a, int b) {
    return a * b;
}
GNND_HOST_DEVICE inline float absolute(float a) {
    return a < 0 ? -a : a;
}
GNND_HOST_DEVICE inline float larger(float a, float b) {
    return a > b ? a : b;
}
/// a / b, and 0 where b is 0.
GNND_HOST_DEVICE inline float ratio(float a, float b) {
    return b == 0 ? 0 : a / b;
}

/// What most metrics share: partial results add up, nothing is negated or normalised.
struct Sum {
    static constexpr bool exact_in_integers = false, similarity = false, normalized = false;
    template <class A>
    GNND_HOST_DEVICE static A combine(A x, A y) {
        return x + y;
    }
};

struct L2 : Sum {
    static constexpr bool exact_in_integers = true;
    template <class A, class T>
    GNND_HOST_DEVICE static A accumulate(A acc, T a, T b) {
        const T difference = a - b;
        return acc + product(difference, difference);
    }
};

struct InnerProduct : Sum {
    static constexpr bool exact_in_integers = true, similarity = true;
    template <class A, class T>
    GNND_HOST_DEVICE static A accumulate(A acc, T a, T b) {
        return acc + product(a, b);
    }
};

struct Cosine : InnerProduct {
    static constexpr bool normalized = true;
};

struct L1 : Sum {
    template <class T>
    GNND_HOST_DEVICE static T accumulate(T acc, T a, T b) {
        return acc + absolute(a - b);
    }
};

struct Linf : Sum {
    template <class T>
    GNND_HOST_DEVICE static T accumulate(T acc, T a, T b) {
        return larger(acc, absolute(a - b));
    }
    template <class A>
    GNND_HOST_DEVICE static A combine(A x, A y) {
        return larger(x, y);
    }
};

struct ChiSquare : Sum {
    template <class T>
    GNND_HOST_DEVICE static T accumulate(T acc, T a, T b) {
        const T difference = a - b;
        return acc + ratio(product(difference, difference), a + b);
    }
};

}  // namespace metrics

[[noreturn]] void throw_unknown(Metric metric);

/// Calls f with the metric's struct; the one place that lists them all.
template <class F>
decltype(auto) visit(Metric metric, F&& f) {
    switch (metric) {
        case Metric::L2:
            return f(metrics::L2{});
        case Metric::InnerProduct:
            return f(metrics::InnerProduct{});
        case Metric::Cosine:
            return f(metrics::Cosine{});
        case Metric::L1:
            return f(metrics::L1{});
        case Metric::Linf:
            return f(metrics::Linf{});
        case Metric::ChiSquare:
            return f(metrics::ChiSquare{});
    }
    throw_unknown(metric);
}

/// True where larger values are nearer (inner product, cosine).
inline bool is_similarity(Metric metric) {
    return visit(metric, [](auto m) { return m.similarity; });
}

/// The name on the command line and in files: "l2", "ip", "cosine", "l1", "linf" or "chi2".
std::string_view name_of(Metric metric);

/// The inverse of name_of; throws InvalidArgument that lists the known names.
Metric parse_metric(std::string_view name);

/// What fills the row's end where fewer than k neighbours exist: +inf, -inf for similarities (FAISS's convention).
inline float worst_value(Metric metric) {
    return is_similarity(metric) ? -INFINITY : INFINITY;
}

}  // namespace gnnd
