// SPDX-License-Identifier: MIT
#pragma once
/// \file gather.h
/// How rows come into a tile (kernels.h): their components are converted to the working type. In the namespace
/// GNND_ISA, under the same rules as kernels_isa.cpp.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gnnd/cpu/kernels.h"
#include "gnnd/cpu/simd.h"
#include "gnnd/dtype.h"

namespace gnnd::cpu::GNND_ISA {

/// Components of a row in a tile, with the zeros behind them.
inline int padded(int width, int element) {
    return (width * element + 63) / 64 * 64 / element;
}

template <class S>
void convert(const S* from, int count, float* to) {
    for (int i = 0; i < count; ++i) to[i] = float(from[i]);
}

template <class S>
void convert(const S* from, int count, std::int16_t* to) {
    for (int i = 0; i < count; ++i) to[i] = from[i];
}

inline void convert(const half* from, int count, float* to) {
#if defined(__F16C__)
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
    for (; i < count; ++i) to[i] = _cvtsh_ss(from[i].bits);
#else
    for (int i = 0; i < count; ++i) to[i] = to_float(from[i]);
#endif
}

inline void convert(const bfloat16* from, int count, float* to) {
    for (int i = 0; i < count; ++i) {
        const std::uint32_t bits = std::uint32_t(from[i].bits) << 16;
        std::memcpy(to + i, &bits, sizeof bits);
    }
}

/// Bytes as unsigned ones: signed ones become 128 larger.
template <class S>
void convert(const S* from, int count, std::uint8_t* to) {
    for (int i = 0; i < count; ++i) to[i] = std::uint8_t(from[i] + (std::is_signed_v<S> ? 128 : 0));
}

/// S: type in memory, W: working type.
template <class S, class W>
void gather(const std::byte* base, std::int64_t row_bytes, const std::int32_t* ids, int count, std::int64_t begin,
            int width, void* tile) {
    const int end = padded(width, sizeof(W));
    for (int i = 0; i < count; ++i) {
        const S* from = (const S*)(base + (ids != nullptr ? ids[i] : i) * row_bytes) + begin;
        W* to = (W*)tile + i * end;
        convert(from, width, to);
        for (int c = width; c < end; ++c) to[c] = 0;
    }
}

}  // namespace gnnd::cpu::GNND_ISA
