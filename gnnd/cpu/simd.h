// SPDX-License-Identifier: MIT
#pragma once
/// \file simd.h
/// The vector types of one instruction set, in the namespace GNND_ISA, with what metric.h asks of a type. They are
/// plain compiler vectors; only the widening product of int16 and the conversion of float16 need intrinsics.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gnnd::cpu::GNND_ISA {

#if defined(__AVX512F__)
inline constexpr int kBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif

/// A vector of `Size` bytes of T.
template <class T, int Size>
struct Vec {
    typedef T Raw __attribute__((vector_size(Size)));
    static constexpr int lanes = Size / int(sizeof(T));
    Raw v;

    static Vec load(const void* from) {
        Vec r;
        std::memcpy(&r.v, from, Size);
        return r;
    }
    void store(void* to) const { std::memcpy(to, &v, Size); }
    static Vec fill(T value) { return {Raw{} + value}; }

    friend Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
    friend Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
    friend Vec absolute(Vec a) { return {a.v < 0 ? -a.v : a.v}; }
    friend Vec larger(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
    friend Vec ratio(Vec a, Vec b) { return {b.v == 0 ? Raw{} : a.v / b.v}; }
};

using F32 = Vec<float, kBytes>;
using I32 = Vec<std::int32_t, kBytes>;
using I16 = Vec<std::int16_t, kBytes>;
using F32x4 = Vec<float, 16>;
using I32x4 = Vec<std::int32_t, 16>;

inline F32 product(F32 a, F32 b) {
    return {a.v * b.v};
}

/// Sums of the products of two neighbouring lanes.
inline I32 product(I16 a, I16 b) {
#if defined(__AVX512F__)
    return {(I32::Raw)_mm512_madd_epi16((__m512i)a.v, (__m512i)b.v)};
#elif defined(__AVX2__)
    return {(I32::Raw)_mm256_madd_epi16((__m256i)a.v, (__m256i)b.v)};
#elif defined(__SSE2__)
    return {(I32::Raw)_mm_madd_epi16((__m128i)a.v, (__m128i)b.v)};
#else
    I32 r;
    for (int i = 0; i < I32::lanes; ++i) r.v[i] = a.v[2 * i] * b.v[2 * i] + a.v[2 * i + 1] * b.v[2 * i + 1];
    return r;
#endif
}

/// The quarters, halves or whole of a vector, joined by M::combine into four lanes.
template <class M, class T>
inline Vec<T, 16> fold(Vec<T, kBytes> a) {
    Vec<T, 16> part[kBytes / 16];
    std::memcpy(part, &a, kBytes);
    Vec<T, 16> r = part[0];
    for (int i = 1; i < kBytes / 16; ++i) r = M::combine(r, part[i]);
    return r;
}

/// Lane i of the result is all lanes of a[i] joined by M::combine.
template <class M, class T>
inline Vec<T, 16> fold4(const Vec<T, kBytes>* a) {
    const Vec<T, 16> x0 = fold<M>(a[0]), x1 = fold<M>(a[1]), x2 = fold<M>(a[2]), x3 = fold<M>(a[3]);
    const auto join = [](Vec<T, 16> x, Vec<T, 16> y) {  // x0+x2, y0+y2, x1+x3, y1+y3
        return M::combine(Vec<T, 16>{__builtin_shufflevector(x.v, y.v, 0, 4, 1, 5)},
                          Vec<T, 16>{__builtin_shufflevector(x.v, y.v, 2, 6, 3, 7)});
    };
    const Vec<T, 16> s01 = join(x0, x1), s23 = join(x2, x3);
    return M::combine(Vec<T, 16>{__builtin_shufflevector(s01.v, s23.v, 0, 1, 4, 5)},
                      Vec<T, 16>{__builtin_shufflevector(s01.v, s23.v, 2, 3, 6, 7)});
}

}  // namespace gnnd::cpu::GNND_ISA
