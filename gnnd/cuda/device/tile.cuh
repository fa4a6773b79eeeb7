// SPDX-License-Identifier: MIT
#pragma once
/// \file tile.cuh
/// Rows of points in shared memory, and the products of all pairs of 16 rows with 8 others, one warp at a time.
///
/// The thread of lane l holds four sums of a 16 x 8 tile: rows l/4 and l/4 + 8, columns 2 (l%4) and 2 (l%4) + 1, in the
/// order (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1). That is how the tensor instruction
/// leaves them, and the other engines follow.

#include <cuda_fp16.h>

#include <type_traits>

#include "gnnd/cuda/device/points.cuh"
#include "gnnd/metric.h"

namespace gnnd::cuda {

inline constexpr int kTileRows = 16, kTileColumns = 8;

/// The place of a 16-byte chunk of a row in a tile of rows. The permutation spreads one chunk of eight rows over all
/// banks.
__device__ inline int chunk_offset(int row, int chunk) {
    return row * kTileBytes + ((chunk ^ (row & 7)) << 4);
}

/// Starts copying the k-th kTileBytes of the rows ids[0, count) to tile rows first, first + 1, ... (first is a multiple
/// of 8); rows up to `padded`, and what the tile has behind a row's end, become zero. All threads of the block take
/// part.
/// \tparam Rows  padded is at most that; so many ids there are, rounded up to what the threads take at once
template <int Threads, int Rows>
__device__ void load_rows(std::uint8_t* tile, int first, const u32* ids, int count, int padded, const Points& points,
                          int k) {
    constexpr int kChunks = kTileBytes / 16, kAtOnce = Threads / kChunks, kTurns = (Rows + kAtOnce - 1) / kAtOnce;
    static_assert(kAtOnce % 8 == 0);  // a thread's rows share the permutation, and their addresses a step
    const int chunk = threadIdx.x % kChunks, start = threadIdx.x / kChunks;
    const bool inside = chunk * 16 < points.row_bytes - k * kTileBytes;
    const std::uint8_t* column = points.rows + k * kTileBytes + chunk * 16;
    asm("" : "+l"(column));  // else its parts are added one by one, for every row again
    const u32 row_bytes = u32(points.row_bytes);
    const u32 target = u32(__cvta_generic_to_shared(tile + chunk_offset(first + start, chunk)));
    constexpr int kAhead = kTurns < 4 ? kTurns : 4;
#pragma unroll
    for (int first_turn = 0; first_turn < kTurns; first_turn += kAhead) {
        u32 id[kAhead];  // read together, also those of no row
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
            if (first_turn + i < kTurns) id[i] = ids[start + (first_turn + i) * kAtOnce];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int turn = first_turn + i, row = start + turn * kAtOnce;
            if (turn >= kTurns || row >= padded) break;
            // Of 0 bytes nothing is read, whatever the address.
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target + turn * kAtOnce * kTileBytes),
                         "l"(column + u64(id[i]) * row_bytes), "r"(inside && row < count ? 16 : 0));
        }
    }
}
__device__ inline void commit_loads() {
    asm volatile("cp.async.commit_group;");
}
/// Waits until at most `Pending` groups of this thread's loads are under way.
template <int Pending>
__device__ void wait_loads() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
}

/// Sums on the tensor cores: exact int32 for integer cells, float32 for f16.
template <PackedType C>
struct TensorProducts {
    using Sum = std::conditional_t<C == PackedType::f16, float, int>;
    static constexpr PackedType packed = C;
    static constexpr bool kTensor = true;

    /// 16 rows of a tile in registers.
    struct Rows {
        u32 part[kTileBytes / kStep][4];
    };

    __device__ static void load(Rows& rows, const std::uint8_t* tile, int first, int steps) {
        const int matrix = lane_id() / 8, row = first + (matrix & 1) * 8 + lane_id() % 8;
#pragma unroll
        for (int step = 0; step < kTileBytes / kStep; ++step)
            if (step < steps) load_matrices(rows.part[step], tile + chunk_offset(row, step * 2 + matrix / 2));
    }

    /// Adds the products with the 8 rows of the tile that start at `column`.
    __device__ static void multiply(Sum (&sum)[4], const Rows& rows, const std::uint8_t* tile, int column, int steps) {
        const int matrix = lane_id() / 8, row = column + lane_id() % 8;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (half * 2 >= steps) break;
            u32 b[4];
            load_matrices(b, tile + chunk_offset(row, half * 4 + matrix));
            instruction(sum, rows.part[half * 2], b[0], b[1]);
            if (half * 2 + 1 < steps) instruction(sum, rows.part[half * 2 + 1], b[2], b[3]);
        }
    }

    /// The sum of one pair of rows, by a whole warp, without tensor cores.
    __device__ static Sum pair(const Points& points, u32 a, u32 b) {
        const u32 *x = reinterpret_cast<const u32*>(points.row(a)), *y = reinterpret_cast<const u32*>(points.row(b));
        Sum sum = 0;
        for (int word = lane_id(); word < points.row_bytes / 4; word += kWarp) {
            if constexpr (C == PackedType::u8)
                sum = int(__dp4a(x[word], y[word], u32(sum)));
            else if constexpr (C == PackedType::i8)
                sum = __dp4a(int(x[word]), int(y[word]), sum);
            else {
                static_assert(C == PackedType::f16);
                const float2 p = __half22float2(reinterpret_cast<const __half2*>(x)[word]);
                const float2 q = __half22float2(reinterpret_cast<const __half2*>(y)[word]);
                sum += p.x * q.x + p.y * q.y;
            }
        }
        return warp_sum(sum);
    }

  private:
    __device__ static void load_matrices(u32 (&r)[4], const std::uint8_t* row) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(u32(__cvta_generic_to_shared(row))));
    }
    __device__ static void instruction(Sum (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        if constexpr (C == PackedType::u8)
            asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        else if constexpr (C == PackedType::i8)
            asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        else {
            static_assert(C == PackedType::f16);
            asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        }
    }
};

/// Sums of any metric of metric.h, component by component in float32.
template <PackedType C, class M>
struct ScalarSums {
    using Sum = float;
    static constexpr PackedType packed = C;
    static constexpr bool kTensor = false;

    struct Rows {
        const std::uint8_t* tile;
        int first;
    };

    __device__ static void load(Rows& rows, const std::uint8_t* tile, int first, int) { rows = {tile, first}; }

    __device__ static void multiply(Sum (&sum)[4], const Rows& rows, const std::uint8_t* tile, int column, int steps) {
        const int words = steps * (kStep / 4);
        if constexpr (M::divides) {  // the compiler knows better, the other metrics lose 4% where it chooses
            for (int word = 0; word < words; ++word) add_word(sum, rows, tile, column, word);
        } else {
#pragma unroll 2
            for (int word = 0; word < words; ++word) add_word(sum, rows, tile, column, word);
        }
    }

    __device__ static Sum pair(const Points& points, u32 a, u32 b) {
        const u32 *x = reinterpret_cast<const u32*>(points.row(a)), *y = reinterpret_cast<const u32*>(points.row(b));
        Sum sum = 0;
        for (int word = lane_id(); word < points.row_bytes / 4; word += kWarp) {
            float p[kPerWord], q[kPerWord];
            unpack(p, x[word]);
            unpack(q, y[word]);
            for (int j = 0; j < kPerWord; ++j) sum = M::accumulate(sum, p[j], q[j]);
        }
        for (int step = kWarp / 2; step > 0; step /= 2) sum = M::combine(sum, __shfl_xor_sync(kAllLanes, sum, step));
        return sum;
    }

  private:
    static constexpr int kPerWord = C == PackedType::f16 ? 2 : 4;

    __device__ __forceinline__ static void add_word(Sum (&sum)[4], const Rows& rows, const std::uint8_t* tile,
                                                    int column, int word) {
        const int a = rows.first + lane_id() / 4, b = column + lane_id() % 4 * 2;
        float x[2][kPerWord], y[2][kPerWord];
        unpack(x[0], word_of(rows.tile, a, word));
        unpack(x[1], word_of(rows.tile, a + 8, word));
        unpack(y[0], word_of(tile, b, word));
        unpack(y[1], word_of(tile, b + 1, word));
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < kPerWord; ++j) sum[i] = M::accumulate(sum[i], x[i / 2][j], y[i % 2][j]);
    }

    __device__ static u32 word_of(const std::uint8_t* tile, int row, int word) {
        return *reinterpret_cast<const u32*>(tile + chunk_offset(row, word / 4) + word % 4 * 4);
    }
    __device__ static void unpack(float (&out)[kPerWord], u32 word) {
        if constexpr (C == PackedType::f16) {
            const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&word));
            out[0] = pair.x;
            out[1] = pair.y;
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                out[j] = C == PackedType::u8 ? float(word >> 8 * j & 0xff) : float(std::int8_t(word >> 8 * j));
        }
    }
};

/// A key is one number that orders the partners of a row by distance and names the partner's column in its low
/// kColumnBits, so that one minimum finds both.
///
///  - integers: (bias + scale * product) << points.shift, with the column in the bits below. The plan chooses the shift
///    so that keys stay inside 32 bits. For rows of up to 128 bytes it is at least kColumnBits, and keys are exact; for
///    longer rows it is less, and the column replaces low bits of the value. What the row's own bias adds is the same
///    for all its partners and comes in afterwards (distance()).
///  - floats: the column replaces the last kColumnBits of the mantissa, which changes the value by 1 in 2^16: of the
///    distance, since the row's bias is in it by then. Of rows far from the origin that are near each other the norms
///    alone would lose more than their distance.
inline constexpr u32 kColumnMask = (1u << kColumnBits) - 1;

/// \tparam Exact  of integers: the bits below the shift are free for the column, so that a column's term() can hold its
///                number, and no instruction is spent on putting it into every key
template <class Sum, bool Exact>
struct Key;

template <bool Exact>
struct Key<int, Exact> {
    static constexpr int kLast = 0x7fffff00;  // from here on no key is valid
    __device__ static int worst() { return 0x7fffffff; }
    /// The part of a column's keys that is the same for all rows.
    __device__ static int term(const Points& points, u32 id, int column) {
        return term_of(points, points.bias == nullptr ? 0 : points.bias[id], column);
    }
    /// The same, given the object's bias, or 0 where there is none.
    __device__ static int term_of(const Points& points, u32 bias, int column) {
        return int(bias) << points.shift | (Exact ? column : 0);
    }
    /// Of a column that stands for no object.
    __device__ static int no_term() { return kLast; }
    /// The argument of make() from a column's term and the row's.
    __device__ static int pair_term(int term, int) { return term; }
    __device__ static int factor(const Points& points) { return points.scale * (1 << points.shift); }
    /// Without a column, and nothing lost to one.
    __device__ static int plain(int sum, int factor, int term) { return sum * factor + term; }
    __device__ static int make(int sum, int factor, int term, int column) {
        if constexpr (Exact) return plain(sum, factor, term);
        return int(u32(plain(sum, factor, term)) & ~kColumnMask) | column;
    }
    __device__ static int column(int key) { return key & int(kColumnMask); }
    __device__ static bool valid(int key) { return key < kLast; }
    /// Nothing rounds, every order of summation gives the same.
    __device__ static int lowered(int key, int, int, int) { return key; }
    /// The distance, given the term of the row's object.
    __device__ static float distance(const Points& points, int key, int row_term) {
        return float((int(u32(key) & ~kColumnMask) >> points.shift) +
                     (int(u32(row_term) & ~kColumnMask) >> points.shift));
    }
};

template <bool Exact>
struct Key<float, Exact> {
    __device__ static float worst() { return INFINITY; }
    __device__ static float term(const Points& points, u32 id, int) {
        return points.bias == nullptr ? 0.0f : __uint_as_float(points.bias[id]);
    }
    __device__ static float term_of(const Points&, u32 bias, int) { return __uint_as_float(bias); }
    /// Finite, since a column in the last bits would make a NaN of an infinity.
    __device__ static float no_term() { return 3e38f; }
    __device__ static float pair_term(float term, float row_term) { return term + row_term; }
    __device__ static float factor(const Points& points) { return float(points.scale); }
    __device__ static float plain(float sum, float factor, float term) { return fmaf(sum, factor, term); }
    __device__ static float make(float sum, float factor, float term, int column) {
        return __uint_as_float((__float_as_uint(plain(sum, factor, term)) & ~kColumnMask) | u32(column));
    }
    __device__ static int column(float key) { return int(__float_as_uint(key) & kColumnMask); }
    __device__ static bool valid(float key) { return key < 1e38f; }
    /// No more than what any order of summation gives, for up to some 8,000 components.
    __device__ static float lowered(float key, float product, float term, float row_term) {
        return key - 0x1p-14f * (fabsf(product) + fabsf(term) + fabsf(row_term));
    }
    __device__ static float distance(const Points&, float key, float) {
        return __uint_as_float(__float_as_uint(key) & ~kColumnMask);
    }
};

}  // namespace gnnd::cuda
