// SPDX-License-Identifier: MIT
// Compiled once per instruction set into the namespace GNND_ISA. Nothing here may call inline functions that other
// files use too: the linker could keep the copy made for a newer processor than the one that runs it.
#include "gnnd/cpu/kernels.h"
#include "gnnd/cpu/simd.h"

namespace gnnd::cpu::GNND_ISA {
namespace {

int padded(int width, int element) {
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

void convert(const half* from, int count, float* to) {
#if defined(__F16C__)
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
    for (; i < count; ++i) to[i] = _cvtsh_ss(from[i].bits);
#else
    for (int i = 0; i < count; ++i) to[i] = to_float(from[i]);
#endif
}

void convert(const bfloat16* from, int count, float* to) {
    for (int i = 0; i < count; ++i) {
        const std::uint32_t bits = std::uint32_t(from[i].bits) << 16;
        std::memcpy(to + i, &bits, sizeof bits);
    }
}

/// S: type in memory, W: working type.
template <class S, class W>
void gather(const std::byte* base, std::int64_t row_bytes, const std::int32_t* ids, int count, std::int64_t begin,
            int width, void* tile) {
    const int end = padded(width, sizeof(W));
    for (int i = 0; i < count; ++i) {
        const S* from = (const S*)(base + (ids != nullptr ? ids[i] : i) * row_bytes) + begin;
        W* to = (W*)((std::byte*)tile + i * kSlice);
        convert(from, width, to);
        for (int c = width; c < end; ++c) to[c] = 0;
    }
}

#if defined(__AVX512F__)
constexpr int kRows = 4;  // 32 registers
#else
constexpr int kRows = 2;  // 16 registers
#endif

F32x4 to_f32(F32x4 a) {
    return a;
}
F32x4 to_f32(I32x4 a) {
    return {__builtin_convertvector(a.v, F32x4::Raw)};
}

/// M: metric, V: vector of the working type, A: vector of the sums.
template <class M, class V, class A>
void block(const void* a, int rows, const void* b, int columns, int width, float* out, int ldo, Slices slices,
           bool triangular) {
    using Part = decltype(fold4<M>((const A*)nullptr));
    const int bytes = padded(width, kBytes / V::lanes) * (kBytes / V::lanes);
    for (int i = 0; i < rows; i += kRows) {
        const std::byte* a_rows = (const std::byte*)a + i * kSlice;
        for (int j = triangular ? i / 4 * 4 : 0; j < columns; j += 4) {
            const std::byte* b_rows = (const std::byte*)b + j * kSlice;
            A sums[kRows][4] = {};
            for (int c = 0; c < bytes; c += kBytes) {
                V x[kRows];
                for (int r = 0; r < kRows; ++r) x[r] = V::load(a_rows + r * kSlice + c);
                for (int s = 0; s < 4; ++s) {
                    const V y = V::load(b_rows + s * kSlice + c);
                    for (int r = 0; r < kRows; ++r) sums[r][s] = M::accumulate(sums[r][s], x[r], y);
                }
            }
            for (int r = 0; r < kRows; ++r) {
                float* to = out + (i + r) * ldo + j;
                Part values = fold4<M>(sums[r]);
                if (slices.continues) values = M::combine(values, Part::load(to));
                if (slices.more)
                    values.store(to);
                else
                    to_f32(values).store(to);
            }
        }
    }
}

template <class M>
void finish(float* out, int rows, int columns, int ldo, const float* scale_a, const float* scale_b) {
    if constexpr (M::similarity) {
        for (int i = 0; i < rows; ++i) {
            float* row = out + i * ldo;
            // The sum with 0 turns -0 into 0: keys are compared as bits.
            if constexpr (M::normalized)
                for (int j = 0; j < columns; ++j) row[j] = 0 - row[j] * (scale_a[i] * scale_b[j]);
            else
                for (int j = 0; j < columns; ++j) row[j] = 0 - row[j];
        }
    }
}

int nearest(const float* row, int begin, int end) {
    int j = begin;
    float best = row[begin];
    int index = begin;
    if (end - begin >= F32::lanes) {
        F32::Raw values = F32::load(row + j).v;
        I32::Raw where;
        for (int l = 0; l < F32::lanes; ++l) where[l] = j + l;
        I32::Raw here = where;
        for (j += F32::lanes; j + F32::lanes <= end; j += F32::lanes) {
            here += F32::lanes;
            const F32::Raw next = F32::load(row + j).v;
            where = next < values ? here : where;
            values = next < values ? next : values;
        }
        best = values[0];
        index = where[0];
        for (int l = 1; l < F32::lanes; ++l)
            if (values[l] < best || (values[l] == best && where[l] < index)) {
                best = values[l];
                index = where[l];
            }
    }
    for (; j < end; ++j)
        if (row[j] < best) {
            best = row[j];
            index = j;
        }
    return index;
}

void keep_nearer(const float* row, int begin, int end, int i, float* best, std::int32_t* index) {
    for (int j = begin; j < end; ++j) {
        const bool nearer = row[j] < best[j];
        best[j] = nearer ? row[j] : best[j];
        index[j] = nearer ? i : index[j];
    }
}

int within(const float* row, int begin, int end, float bound, const float* bounds, std::int32_t* hits) {
    int count = 0;
    int j = begin;
    const F32::Raw limit = F32::fill(bound).v;
    for (; j + F32::lanes <= end; j += F32::lanes) {
        const F32::Raw values = F32::load(row + j).v, limits = F32::load(bounds + j).v;
        I32 inside{(values <= limit) | (values <= limits)};
#if defined(__AVX512F__)
        unsigned mask = _mm512_movepi32_mask((__m512i)inside.v);
#elif defined(__AVX2__)
        unsigned mask = _mm256_movemask_ps((__m256)inside.v);
#elif defined(__SSE2__)
        unsigned mask = _mm_movemask_ps((__m128)inside.v);
#else
        unsigned mask = 0;
        for (int l = 0; l < F32::lanes; ++l) mask |= (inside.v[l] & 1u) << l;
#endif
        for (; mask != 0; mask &= mask - 1) hits[count++] = j + __builtin_ctz(mask);
    }
    for (; j < end; ++j)
        if (row[j] <= bound || row[j] <= bounds[j]) hits[count++] = j;
    return count;
}

template <class M, class S>
Kernels make(std::int64_t d) {
    Kernels k;
    k.element = sizeof(float);
    k.gather = gather<S, float>;
    k.block = block<M, F32, F32>;
    if constexpr (M::is_product && sizeof(S) == 1)
        if (d <= kMaxIntegerDim) {
            k.element = sizeof(std::int16_t);
            k.gather = gather<S, std::int16_t>;
            k.block = block<M, I16, I32>;
        }
    k.finish = finish<M>;
    k.nearest = nearest;
    k.keep_nearer = keep_nearer;
    k.within = within;
    return k;
}

}  // namespace

Kernels kernels(Metric metric, DType dtype, std::int64_t d);
Kernels kernels(Metric metric, DType dtype, std::int64_t d) {
    return visit(metric, [dtype, d](auto m) {
        return visit(dtype, [d](auto component) { return make<decltype(m), decltype(component)>(d); });
    });
}

}  // namespace gnnd::cpu::GNND_ISA
