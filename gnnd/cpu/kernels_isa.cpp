// SPDX-License-Identifier: MIT
// Compiled once per instruction set into the namespace GNND_ISA. Nothing here may call inline functions that other
// files use too: the linker could keep the copy made for a newer processor than the one that runs it.
#include <type_traits>

#include "gnnd/cpu/gather.h"
#include "gnnd/cpu/kernels.h"
#include "gnnd/cpu/simd.h"

namespace gnnd::cpu::GNND_ISA {

void add_scans(Kernels& kernels);  // scans_isa.cpp

namespace {

// The products of a working type. V: a vector of it, A: of the sums. Sums in the lanes of a panel's columns
// become the metric's values by adding what the columns and the rows contribute alone, where there is such a thing.

template <class M, class Vector, class Sums>
struct Direct {
    using V = Vector;
    using A = Sums;
    static constexpr bool has_terms = false;
    static A step(A sums, V x, V y) { return M::accumulate(sums, x, y); }
};

#if defined(__AVX512VNNI__)
/// Bytes by products of unsigned with signed ones: x (y - 128) = x y - 128 x, and all that is missing is linear or a
/// square, of the row or the column alone. Integers, so that nothing is lost. S: type in memory.
template <class M, class S>
struct Bytes {
    using V = U8;
    using A = I32;
    static constexpr bool has_terms = true;
    static constexpr bool is_difference = !M::similarity;  // (x - y)^2 = x^2 + y^2 - 2 x y
    static constexpr bool is_signed = std::is_signed_v<S> && !is_difference;

    static I8 packed(U8 x) { return {(I8::Raw)(x.v ^ std::uint8_t(0x80))}; }  // 128 less
    static A step(A sums, V x, V y) { return add_products(sums, x, (const I8&)y); }

    /// Adds up what values needs of four components of 16 columns, or of 64 components of a row.
    static void add_terms(V x, A& squares, A& sums) {
        if constexpr (is_difference) squares = add_products(squares, x, packed(x));  // x^2 - 128 x
        sums = add_products(sums, x, I8::fill(1));
    }
    static A of_columns(A squares, A sums, int width) {
        if constexpr (is_difference) return {squares.v + 128 * sums.v};
        if constexpr (is_signed) return {-128 * (sums.v - 128 * width)};
        return {A::Raw{}};
    }
    static A of_row(A squares, A sums) {
        if constexpr (is_signed) return {A::Raw{}};
        return {is_difference ? squares.v - 128 * sums.v : 128 * sums.v};
    }
    static A values(A sums, A columns, std::int32_t row) {
        return {(is_difference ? -2 * sums.v : sums.v) + columns.v + row};
    }
};
#else
/// L2 of bytes as 16-bit integers: (x - y)^2 = x^2 + y^2 - 2 x y, which is an instruction less than the difference.
struct Products {
    using V = I16;
    using A = I32;
    static constexpr bool has_terms = true;

    static V packed(V x) { return x; }
    static A step(A sums, V x, V y) { return add_product(sums, x, y); }
    static void add_terms(V x, A& squares, A&) { squares = add_product(squares, x, x); }
    static A of_columns(A squares, A, int) { return squares; }
    static A of_row(A squares, A) { return squares; }
    static A values(A sums, A columns, std::int32_t row) { return {columns.v + row - 2 * sums.v}; }
};
#endif

constexpr int kWord = 4;                                  // bytes: rows and columns meet word by word
constexpr int kInPanel = kPanelColumns * kWord / kBytes;  // vectors
constexpr std::size_t kTerms = kPanelColumns * kSlice;    // where those of the columns are in a panel
static_assert(kTerms + kPanelColumns * sizeof(std::int32_t) == kPanelBytes);

/// The part of the values of a row's pairs that the row contributes alone.
template <class Way>
std::int32_t term_of(const std::byte* row, int words) {
    typename Way::A squares = {}, sums = {};
    for (int c = 0; c < kWord * words; c += kBytes) Way::add_terms(Way::V::load(row + c), squares, sums);
    return sum(Way::of_row(squares, sums));
}

template <class Way>
void pack(const void* tile, int count, int width, void* panels) {
    using V = typename Way::V;
    constexpr int kLanes = I32::lanes;
    const int bytes = padded(width, kBytes / V::lanes) * (kBytes / V::lanes);
    for (int first = 0; first < count; first += kPanelColumns) {
        const std::byte* from = (const std::byte*)tile + first * bytes;
        std::byte* panel = (std::byte*)panels + first / kPanelColumns * kPanelBytes;
        for (int part = 0; part < kInPanel; ++part) {
            I32 squares = {}, sums = {};
            for (int c = 0; c < bytes; c += kBytes) {
                I32 words[kLanes];
                for (int i = 0; i < kLanes; ++i) words[i] = I32::load(from + (part * kLanes + i) * bytes + c);
                transpose(words);
                std::byte* to = panel + c / kWord * (kPanelColumns * kWord) + part * kBytes;
                for (int i = 0; i < kLanes; ++i, to += kPanelColumns * kWord) {
                    if constexpr (Way::has_terms) {
                        const V x = V::load(&words[i]);
                        Way::add_terms(x, squares, sums);
                        Way::packed(x).store(to);
                    } else {
                        words[i].store(to);
                    }
                }
            }
            if constexpr (Way::has_terms) Way::of_columns(squares, sums, width).store(panel + kTerms + part * kBytes);
        }
    }
}

/// R rows times the columns of Q vectors from the `first` one on. Every pair's sum is formed in the order of the
/// components, wherever the pair stands. row_bytes: of a, from one row to the next; terms: of the rows, where there are
/// such
template <class M, class Way, int R, int Q>
void multiply(const std::byte* a, int row_bytes, const std::byte* b, int first, int words, const std::int32_t* terms,
              float* out, int ldo, Slices slices) {
    using V = typename Way::V;
    using A = typename Way::A;
    const std::byte* columns[Q];
    for (int q = 0; q < Q; ++q) columns[q] = b + (first + q) / kInPanel * kPanelBytes + (first + q) % kInPanel * kBytes;
    A sums[R][Q] = {};
    for (int c = 0; c < words; ++c) {
        V y[Q];
        for (int q = 0; q < Q; ++q) y[q] = V::load(columns[q] + c * kInPanel * kBytes);
        for (int r = 0; r < R; ++r) {
            const V x = V::repeat(a + r * row_bytes + c * kWord);
            for (int q = 0; q < Q; ++q) sums[r][q] = Way::step(sums[r][q], x, y[q]);
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int q = 0; q < Q; ++q) {
            float* to = out + r * ldo + (first + q) * A::lanes;
            A values = sums[r][q];
            if constexpr (Way::has_terms) values = Way::values(values, A::load(columns[q] + kTerms), terms[r]);
            if (slices.continues) values = M::combine(values, A::load(to));
            if (slices.more)
                values.store(to);
            else
                F32{__builtin_convertvector(values.v, F32::Raw)}.store(to);
        }
    }
}

/// As many rows and vectors of columns at a time as there are registers for, then half as many rows, down to one.
#if defined(__AVX512F__)
constexpr int kRows = 8, kVectors = 2;  // 32 registers
#else
constexpr int kRows = kBytes / 8, kVectors = kInPanel;  // 16 registers
#endif

template <class M, class Way, int R>
void multiply_rows(const std::byte* a, int from, int rows, const std::byte* b, int columns, int words, float* out,
                   int ldo, Slices slices, bool triangular) {
    constexpr int kLanes = Way::A::lanes;
    const int vectors = (columns + kLanes - 1) / kLanes;
    const int row_bytes = padded(words, kWord) * kWord;  // as gather() lays them out
    int i = from;
    for (; i + R <= rows; i += R) {
        const std::byte* row = a + i * row_bytes;
        std::int32_t terms[R] = {};
        if constexpr (Way::has_terms)
            for (int r = 0; r < R; ++r) terms[r] = term_of<Way>(row + r * row_bytes, words);
        int v = triangular ? (i + 1) / kLanes : 0;
        for (; v + kVectors <= vectors; v += kVectors)
            multiply<M, Way, R, kVectors>(row, row_bytes, b, v, words, terms, out + i * ldo, ldo, slices);
        for (; v < vectors; ++v) multiply<M, Way, R, 1>(row, row_bytes, b, v, words, terms, out + i * ldo, ldo, slices);
    }
    if constexpr (R > 1) multiply_rows<M, Way, R / 2>(a, i, rows, b, columns, words, out, ldo, slices, triangular);
}

template <class M, class Way>
void block(const void* a, int rows, const void* b, int columns, int width, float* out, int ldo, Slices slices,
           bool triangular) {
    constexpr int kElement = kBytes / Way::V::lanes;
    const int words = (width * kElement + kWord - 1) / kWord;
    multiply_rows<M, Way, kRows>((const std::byte*)a, 0, rows, (const std::byte*)b, columns, words, out, ldo, slices,
                                 triangular);
}

template <class M, class Way>
void pairs(const void* a, const void* b, int count, int width, float* out, Slices slices) {
    using A = typename Way::A;
    for (int first = 0; first < count; first += kPanelColumns) {
        const std::size_t panel = first / kPanelColumns * kPanelBytes;
        const std::byte *x = (const std::byte*)a + panel, *y = (const std::byte*)b + panel;
        A sums[kInPanel] = {};
        for (int c = 0; c < width; ++c)
            for (int q = 0; q < kInPanel; ++q) {
                const int at = (c * kInPanel + q) * kBytes;
                sums[q] = Way::step(sums[q], Way::V::load(x + at), Way::V::load(y + at));
            }
        for (int q = 0; q < kInPanel; ++q) {
            float* to = out + first + q * A::lanes;
            if (slices.continues) sums[q] = M::combine(sums[q], A::load(to));
            sums[q].store(to);
        }
    }
}

/// Each row's sums are in the lanes of a vector; those of as many rows as there are lanes change places, so that a row
/// is a lane in the end.
template <class M>
void keys_to(const float* x, const float* rows, std::int64_t d, const std::int32_t* ids, int count, float* out) {
    constexpr int kLanes = F32::lanes;
    const std::int64_t whole = d / kLanes * kLanes;
    const std::size_t rest = (d - whole) * sizeof(float);
    F32 last = {};
    std::memcpy(&last, x + whole, rest);
    for (int first = 0; first < count; first += kLanes) {
        F32 sums[kLanes] = {};
        for (int i = 0; i < kLanes && first + i < count; ++i) {
            const float* y = rows + ids[first + i] * d;
            F32 even = {}, odd = {};
            std::int64_t c = 0;
            for (; c + 2 * kLanes <= whole; c += 2 * kLanes) {
                even = M::accumulate(even, F32::load(x + c), F32::load(y + c));
                odd = M::accumulate(odd, F32::load(x + c + kLanes), F32::load(y + c + kLanes));
            }
            if (c < whole) even = M::accumulate(even, F32::load(x + c), F32::load(y + c));
            if (rest != 0) {
                F32 other = {};
                std::memcpy(&other, y + whole, rest);
                odd = M::accumulate(odd, last, other);
            }
            sums[i] = M::combine(even, odd);
        }
        I32 lanes[kLanes];
        std::memcpy(lanes, sums, sizeof lanes);
        transpose(lanes);
        std::memcpy(sums, lanes, sizeof lanes);
        for (int i = 1; i < kLanes; ++i) sums[0] = M::combine(sums[0], sums[i]);
        if constexpr (M::similarity) sums[0] = F32{} - sums[0];  // 0, not -0: keys are compared as bits
        sums[0].store(out + first);
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

template <class M, class S, class W, class Way>
Kernels with() {
    Kernels k;
    k.element = sizeof(W);
    k.gather = gather<S, W>;
    k.pack = pack<Way>;
    k.block = block<M, Way>;
    k.pairs = nullptr;
    if constexpr (sizeof(W) == sizeof(float)) k.pairs = pairs<M, Way>;
    k.keys_to = nullptr;
    if constexpr (std::is_same_v<S, float> && !M::normalized) k.keys_to = keys_to<M>;
    k.finish = finish<M>;
    add_scans(k);
    return k;
}

template <class M, class S>
Kernels make(std::int64_t d) {
    if constexpr (M::is_product && sizeof(S) == 1)
        if (d <= kMaxIntegerDim) {
#if defined(__AVX512VNNI__)
            return with<M, S, std::uint8_t, Bytes<M, S>>();
#else
            return with<M, S, std::int16_t, std::conditional_t<M::similarity, Direct<M, I16, I32>, Products>>();
#endif
        }
    return with<M, S, float, Direct<M, F32, F32>>();
}

}  // namespace

Kernels kernels(Metric metric, DType dtype, std::int64_t d);
Kernels kernels(Metric metric, DType dtype, std::int64_t d) {
    return visit(metric, [dtype, d](auto m) {
        return visit(dtype, [d](auto component) { return make<decltype(m), decltype(component)>(d); });
    });
}

}  // namespace gnnd::cpu::GNND_ISA
