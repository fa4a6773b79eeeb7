#pragma once
/// \file exact.cuh
/// The metric's value of a pair of rows in the caller's own type: float32 sums, integers exactly.

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/metric.h"

namespace gnnd::cuda {

/// Components that are read at once.
template <class T, int Run>
struct alignas(sizeof(T) * Run) Components {
    T at[Run];
};

/// Adds a run of components to a partial result. Instructions that take four bytes at a time do where they can.
template <class M, class T, int Run, class Value>
__device__ Value accumulate(Value sum, const Components<T, Run>& x, const Components<T, Run>& y) {
    constexpr bool kBytes = M::exact_in_integers && std::is_integral_v<T> && !M::normalized && Run % 4 == 0;
    if constexpr (kBytes) {
        using Word = std::conditional_t<std::is_signed_v<T>, int, u32>;
        const Word *a = reinterpret_cast<const Word*>(&x), *b = reinterpret_cast<const Word*>(&y);
        Word squares = 0, products = 0;
#pragma unroll
        for (int i = 0; i < Run / 4; ++i) {
            products = __dp4a(a[i], b[i], products);
            if constexpr (!M::similarity) squares = __dp4a(a[i], a[i], __dp4a(b[i], b[i], squares));
        }
        // Of l2 as a^2 + b^2 - 2ab, three instructions for four components: differences of bytes take seven.
        sum += Value(M::similarity ? products : squares - 2 * products);
        static_assert(std::is_same_v<M, metrics::L2> || std::is_same_v<M, metrics::InnerProduct>);
    } else {
#pragma unroll
        for (int i = 0; i < Run; ++i) sum = M::accumulate(sum, Value(x.at[i]), Value(y.at[i]));
    }
    return sum;
}

/// exact() with the sums of all lanes in a Total.
template <class T, class M, int Lanes, int Run, class Total>
__device__ float exact_in(const T* a, const T* b, std::int64_t d) {
    using Value = std::conditional_t<std::is_integral_v<Total>, int, float>;
    using Part = Components<T, Run>;
    Total sum = 0, aa = 0, bb = 0;
    constexpr int kAtOnce = 1 << 14;  // components that an int is sure to hold the sum of, a lane
    for (std::int64_t begin = 0; begin < d; begin += std::int64_t(kAtOnce) * Lanes) {
        const std::int64_t end = min(d, begin + std::int64_t(kAtOnce) * Lanes);
        Value part = 0, part_aa = 0, part_bb = 0;
#pragma unroll 4
        for (std::int64_t c = begin + lane_id() % Lanes * Run; c < end; c += Lanes * Run) {
            Part x, y;
            if (Run == 1 || c + Run <= end) {
                x = *reinterpret_cast<const Part*>(a + c);
                y = *reinterpret_cast<const Part*>(b + c);
            } else {
#pragma unroll
                for (int i = 0; i < Run; ++i) {
                    x.at[i] = c + i < end ? a[c + i] : T(0);
                    y.at[i] = c + i < end ? b[c + i] : T(0);
                }
            }
            part = accumulate<M>(part, x, y);
            if constexpr (M::normalized) {
                part_aa = accumulate<metrics::InnerProduct>(part_aa, x, x);
                part_bb = accumulate<metrics::InnerProduct>(part_bb, y, y);
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
template <class T, class M, int Lanes, int Run, class Total>
__device__ __noinline__ float exact_called(const T* a, const T* b, std::int64_t d) {
    return exact_in<T, M, Lanes, Run, Total>(a, b, d);
}

/// By `Lanes` neighbouring lanes for one pair, by a whole warp for as many pairs as that gives.
/// \tparam Run  components that a lane reads at once: a and b are aligned to so many
template <class T, class M, int Lanes, int Run>
__device__ float exact(const T* a, const T* b, std::int64_t d) {
    constexpr std::int64_t kFitsInt = 1 << 15;  // so many products of uint8
    constexpr bool kUsual = Run > 1 || Lanes == kWarp;
    constexpr bool kInteger = M::exact_in_integers && std::is_integral_v<T>;
    using Total = std::conditional_t<kInteger, int, float>;
    if constexpr (kInteger)
        if (d > kFitsInt) return exact_called<T, M, Lanes, Run, long long>(a, b, d);
    if constexpr (kUsual)
        return exact_in<T, M, Lanes, Run, Total>(a, b, d);
    else
        return exact_called<T, M, Lanes, Run, Total>(a, b, d);
}

}  // namespace gnnd::cuda
