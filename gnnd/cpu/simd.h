// SPDX-License-Identifier: MIT
#pragma once
/// \file simd.h
/// The vector types of one instruction set, in the namespace GNND_ISA, with what metric.h asks of a type. They are
/// plain compiler vectors; only sums of products and the conversion of float16 need intrinsics.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

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
    /// The four bytes there, again and again.
    static Vec repeat(const void* from) {
        std::int32_t word;
        std::memcpy(&word, from, sizeof word);
        typedef std::int32_t Words __attribute__((vector_size(Size)));
        return {(Raw)(Words{} + word)};
    }
    static Vec fill(T value) { return {Raw{} + value}; }

    friend Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
    friend Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
    friend Vec absolute(Vec a) { return {a.v < 0 ? -a.v : a.v}; }
    friend Vec larger(Vec a, Vec b) { return {a.v < b.v ? b.v : a.v}; }
    friend Vec ratio(Vec a, Vec b) { return {b.v == 0 ? Raw{} : a.v / b.v}; }
};

using F32 = Vec<float, kBytes>;
using I32 = Vec<std::int32_t, kBytes>;
using I16 = Vec<std::int16_t, kBytes>;
using U8 = Vec<std::uint8_t, kBytes>;
using I8 = Vec<std::int8_t, kBytes>;

inline F32 product(F32 a, F32 b) {
    return {a.v * b.v};
}

/// sum + a b, rounded once where the instruction set can. It is said here and not left to the compiler, which may
/// contract one kernel's sums and not another's: a pair would have two distances, and its object two places in a list.
inline F32 add_product(F32 sum, F32 a, F32 b) {
#if defined(__AVX512F__)
    return {(F32::Raw)_mm512_fmadd_ps((__m512)a.v, (__m512)b.v, (__m512)sum.v)};
#elif defined(__FMA__)
    return {(F32::Raw)_mm256_fmadd_ps((__m256)a.v, (__m256)b.v, (__m256)sum.v)};
#elif defined(__FP_FAST_FMAF)
    for (int i = 0; i < F32::lanes; ++i) sum.v[i] = __builtin_fmaf(a.v[i], b.v[i], sum.v[i]);
    return sum;
#else
    return {sum.v + a.v * b.v};
#endif
}

/// The products of two neighbouring lanes, added to `sum`.
inline I32 add_product(I32 sum, I16 a, I16 b) {
#if defined(__AVX512F__)
    return {sum.v + (I32::Raw)_mm512_madd_epi16((__m512i)a.v, (__m512i)b.v)};
#elif defined(__AVX2__)
    return {sum.v + (I32::Raw)_mm256_madd_epi16((__m256i)a.v, (__m256i)b.v)};
#elif defined(__SSE2__)
    return {sum.v + (I32::Raw)_mm_madd_epi16((__m128i)a.v, (__m128i)b.v)};
#else
    for (int i = 0; i < I32::lanes; ++i) sum.v[i] += a.v[2 * i] * b.v[2 * i] + a.v[2 * i + 1] * b.v[2 * i + 1];
    return sum;
#endif
}

/// Sums of the products of four neighbouring lanes, added to `sums`. a is unsigned.
#if defined(__AVX512VNNI__)
inline I32 add_products(I32 sums, U8 a, I8 b) {
    return {(I32::Raw)_mm512_dpbusd_epi32((__m512i)sums.v, (__m512i)a.v, (__m512i)b.v)};
}
#endif

/// Of all lanes.
inline std::int32_t sum(I32 a) {
    Vec<std::int32_t, 16> parts[kBytes / 16];
    std::memcpy(parts, &a, kBytes);
    for (int i = 1; i < kBytes / 16; ++i) parts[0] = parts[0] + parts[i];
    return parts[0].v[0] + parts[0].v[1] + parts[0].v[2] + parts[0].v[3];
}

/// Halves of two vectors (of all lanes the first ones, or the last ones), lane by lane in turn.
template <int First, std::size_t... I>
inline I32 interleave(I32 a, I32 b, std::index_sequence<I...>) {
    return {__builtin_shufflevector(a.v, b.v, (First + int(I) / 2 + (I % 2 != 0 ? I32::lanes : 0))...)};
}

/// Lane j of the i-th vector and lane i of the j-th change places: log2(lanes) rounds of a perfect shuffle.
inline void transpose(I32* vectors) {
    constexpr int kLanes = I32::lanes;
    constexpr auto kAll = std::make_index_sequence<kLanes>();
    for (int round = 1; round < kLanes; round *= 2) {
        I32 next[kLanes];
        for (int i = 0; i < kLanes / 2; ++i) {
            next[2 * i] = interleave<0>(vectors[i], vectors[i + kLanes / 2], kAll);
            next[2 * i + 1] = interleave<kLanes / 2>(vectors[i], vectors[i + kLanes / 2], kAll);
        }
        std::memcpy(vectors, next, sizeof next);
    }
}

}  // namespace gnnd::cpu::GNND_ISA
