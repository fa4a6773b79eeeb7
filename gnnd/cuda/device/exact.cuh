// SPDX-License-Identifier: MIT
#pragma once
/// \file exact.cuh
/// The metric's value of a pair of rows in the caller's own type: float32 sums, integers exactly.

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/metric.h"

namespace gnnd::cuda {

/// Adds 16 bytes of components to a partial result. Instructions that take four bytes at a time do where they can.
template <class M, class T, class Value>
__device__ Value accumulate(Value sum, const uint4& x, const uint4& y) {
    if constexpr (M::is_product && std::is_integral_v<T> && !M::normalized) {
        using Word = std::conditional_t<std::is_signed_v<T>, int, u32>;
        const Word a[] = {Word(x.x), Word(x.y), Word(x.z), Word(x.w)},
                   b[] = {Word(y.x), Word(y.y), Word(y.z), Word(y.w)};
        Word aa = 0, bb = 0, ab = 0;  // apart: aa is the same for many b
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            ab = __dp4a(a[i], b[i], ab);
            if constexpr (!M::similarity) {
                aa = __dp4a(a[i], a[i], aa);
                bb = __dp4a(b[i], b[i], bb);
            }
        }
        // Of l2, three instructions at most for four components: differences of bytes take seven.
        sum += Value(M::similarity ? ab : aa + bb - 2 * ab);
        static_assert(std::is_same_v<M, metrics::L2> || std::is_same_v<M, metrics::InnerProduct>);
    } else {
        const T *a = reinterpret_cast<const T*>(&x), *b = reinterpret_cast<const T*>(&y);
#pragma unroll
        for (int i = 0; i < int(sizeof(uint4) / sizeof(T)); ++i) sum = M::accumulate(sum, Value(a[i]), Value(b[i]));
    }
    return sum;
}

/// exact() with the sums of all lanes in a Total.
template <class T, class M, int Lanes, class Total>
__device__ float exact_in(const T* a, const T* b, std::int64_t d) {
    using Value = std::conditional_t<std::is_integral_v<Total>, int, float>;
    Total sum = 0, aa = 0, bb = 0;
    constexpr int kAtOnce = 1 << 14;  // components that an int is sure to hold the sum of, a lane
    for (std::int64_t begin = 0; begin < d; begin += std::int64_t(kAtOnce) * Lanes) {
        const std::int64_t end = min(d, begin + std::int64_t(kAtOnce) * Lanes);
        Value part = 0, part_aa = 0, part_bb = 0;
#pragma unroll 4
        for (std::int64_t c = begin + lane_id() % Lanes; c < end; c += Lanes) {
            const Value x = Value(a[c]), y = Value(b[c]);
            part = M::accumulate(part, x, y);
            if constexpr (M::normalized) {
                part_aa = metrics::InnerProduct::accumulate(part_aa, x, x);
                part_bb = metrics::InnerProduct::accumulate(part_bb, y, y);
            }
        }
        sum = M::combine(sum, Total(part));
        aa += Total(part_aa);
        bb += Total(part_bb);
    }
#pragma unroll
    for (int step = Lanes / 2; step > 0; step /= 2) {
        sum = M::combine(sum, __shfl_xor_sync(kAllLanes, sum, step));
        if constexpr (M::normalized) {
            aa += __shfl_xor_sync(kAllLanes, aa, step);
            bb += __shfl_xor_sync(kAllLanes, bb, step);
        }
    }
    if constexpr (M::normalized) return float(sum) / (sqrtf(float(aa)) * sqrtf(float(bb)));
    return float(sum);
}

/// The same for what is rare, not inlined: it would double the time to compile.
template <class T, class M, int Lanes, class Total>
__device__ __noinline__ float exact_called(const T* a, const T* b, std::int64_t d) {
    return exact_in<T, M, Lanes, Total>(a, b, d);
}

inline constexpr std::int64_t kFitsInt = 1 << 15;  ///< so many products of uint8

/// By `Lanes` neighbouring lanes for one pair, by a whole warp for as many pairs as that gives.
template <class T, class M, int Lanes>
__device__ float exact(const T* a, const T* b, std::int64_t d) {
    constexpr bool kInteger = M::is_product && std::is_integral_v<T>;
    using Total = std::conditional_t<kInteger, int, float>;
    if constexpr (kInteger)
        if (d > kFitsInt) return exact_called<T, M, Lanes, long long>(a, b, d);
    if constexpr (Lanes == kWarp)
        return exact_in<T, M, Lanes, Total>(a, b, d);
    else
        return exact_called<T, M, Lanes, Total>(a, b, d);
}

/// Of one row with N others, by a whole warp: what exact() gives for each, bit for bit, with their loads in flight
/// together.
/// \param row_of  the i-th of the other rows
template <class T, class M, int N, class RowOf>
__device__ void exact_several(float (&out)[N], const T* a, const RowOf& row_of, std::int64_t d) {
    constexpr bool kInteger = M::is_product && std::is_integral_v<T>;
    const T* b[N];
#pragma unroll
    for (int i = 0; i < N; ++i) b[i] = row_of(i);
    if (kInteger && d > kFitsInt) {
        for (int i = 0; i < N; ++i) out[i] = exact<T, M, kWarp>(a, b[i], d);
        return;
    }
    using Value = std::conditional_t<kInteger, int, float>;
    Value sums[N] = {}, bb[N] = {}, aa = 0;
#pragma unroll 2
    for (std::int64_t c = lane_id(); c < d; c += kWarp) {
        const Value x = Value(a[c]);
        if constexpr (M::normalized) aa = metrics::InnerProduct::accumulate(aa, x, x);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const Value y = Value(b[i][c]);
            sums[i] = M::accumulate(sums[i], x, y);
            if constexpr (M::normalized) bb[i] = metrics::InnerProduct::accumulate(bb[i], y, y);
        }
    }
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2) {
        if constexpr (M::normalized) aa += __shfl_xor_sync(kAllLanes, aa, step);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            sums[i] = M::combine(sums[i], __shfl_xor_sync(kAllLanes, sums[i], step));
            if constexpr (M::normalized) bb[i] += __shfl_xor_sync(kAllLanes, bb[i], step);
        }
    }
#pragma unroll
    for (int i = 0; i < N; ++i)
        out[i] = M::normalized ? float(sums[i]) / (sqrtf(float(aa)) * sqrtf(float(bb[i]))) : float(sums[i]);
}

/// Lane i of `Lanes` neighbouring ones gets what value[i] of all of them combine to.
template <class M, int Lanes, class Value>
__device__ Value combine_each(Value (&value)[Lanes]) {
#pragma unroll
    for (int half = Lanes / 2; half > 0; half /= 2) {
        const bool upper = (lane_id() & half) != 0;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const Value mine = upper ? value[i + half] : value[i], other = upper ? value[i] : value[i + half];
            value[i] = M::combine(mine, __shfl_xor_sync(kAllLanes, other, half));
        }
    }
    return value[0];
}

/// Of one row with many: `Lanes` neighbouring lanes compute `Lanes` pairs together, and lane i of them gets the i-th.
/// \param row_of  the i-th of the other rows
/// \param whole   whether all rows begin at and consist of whole 16 bytes
template <class T, class M, int Lanes, class RowOf>
__device__ float exact_each(const T* a, const RowOf& row_of, std::int64_t d, bool whole) {
    constexpr bool kInteger = M::is_product && std::is_integral_v<T>;
    if (!whole || (kInteger && d > kFitsInt)) {
        float mine = 0;
        for (int i = 0; i < Lanes; ++i) {
            const float distance = exact<T, M, Lanes>(a, row_of(i), d);
            if (lane_id() % Lanes == i) mine = distance;
        }
        return mine;
    }
    using Value = std::conditional_t<kInteger, int, float>;
    const uint4* b[Lanes];
    Value sums[Lanes] = {}, bb[Lanes] = {}, aa = 0;
#pragma unroll
    for (int i = 0; i < Lanes; ++i) b[i] = reinterpret_cast<const uint4*>(row_of(i));
    const int pieces = int(d * sizeof(T) / sizeof(uint4));
#pragma unroll 1
    for (int c = lane_id() % Lanes; c < pieces; c += Lanes) {
        const uint4 x = __ldg(reinterpret_cast<const uint4*>(a) + c);
        if constexpr (M::normalized) aa = accumulate<metrics::InnerProduct, T>(aa, x, x);
#pragma unroll
        for (int i = 0; i < Lanes; ++i) {
            const uint4 y = __ldg(b[i] + c);
            sums[i] = accumulate<M, T>(sums[i], x, y);
            if constexpr (M::normalized) bb[i] = accumulate<metrics::InnerProduct, T>(bb[i], y, y);
        }
    }
    const Value sum = combine_each<M>(sums);
    if constexpr (M::normalized) {
#pragma unroll
        for (int step = Lanes / 2; step > 0; step /= 2) aa += __shfl_xor_sync(kAllLanes, aa, step);
        return float(sum) / (sqrtf(float(aa)) * sqrtf(float(combine_each<metrics::InnerProduct>(bb))));
    }
    return float(sum);
}

}  // namespace gnnd::cuda
