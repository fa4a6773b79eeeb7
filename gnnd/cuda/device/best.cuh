// SPDX-License-Identifier: MIT
#pragma once
/// \file best.cuh
/// The nearest partners of a row of a tile: one or two for a selective update, twice two for an object of a window.

#include "gnnd/cuda/device/tile.cuh"

namespace gnnd::cuda {

__device__ inline int least(int a, int b, int c) {
    return __vimin3_s32(a, b, c);  // one instruction on Hopper
}
__device__ inline float least(float a, float b, float c) {
    return fminf(a, fminf(b, c));
}

/// Sets a key that no other is worse than.
__device__ inline void set_worst(int& key) {
    key = 0x7fffffff;
}
__device__ inline void set_worst(float& key) {
    key = INFINITY;
}

/// The nearest Top (1 or 2) keys of one row, as far as this thread has seen its columns.
template <class Sum, int Top>
struct Best {
    Sum key[Top];

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < Top; ++i) set_worst(key[i]);
    }
    /// Two keys at once.
    __device__ void take(Sum a, Sum b) {
        if constexpr (Top == 1) {
            key[0] = least(key[0], a, b);
        } else {
            const Sum low = min(a, b), high = max(a, b);
            key[1] = least(max(key[0], low), key[1], high);
            key[0] = min(key[0], low);
        }
    }
    __device__ void take(const Best& other) {
        if constexpr (Top == 1)
            key[0] = min(key[0], other.key[0]);
        else {
            key[1] = min(max(key[0], other.key[0]), min(key[1], other.key[1]));
            key[0] = min(key[0], other.key[0]);
        }
    }
    __device__ Best exchanged(int lanes) const {
        Best other;
#pragma unroll
        for (int i = 0; i < Top; ++i) other.key[i] = __shfl_xor_sync(kAllLanes, key[i], lanes);
        return other;
    }
    /// Two lanes whose numbers differ in one bit have seen different columns of the same two rows, `low` and `high`.
    /// Each gives the other what it has of one row and ends with the best of both lanes of the other row: the lane
    /// without the bit of `low`, the lane with it of `high`. So one exchange serves two rows.
    __device__ static Best halve(const Best& low, const Best& high, int bit) {
        const bool upper = lane_id() & bit;
        Best mine, other;
#pragma unroll
        for (int i = 0; i < Top; ++i) {
            mine.key[i] = upper ? high.key[i] : low.key[i];
            other.key[i] = upper ? low.key[i] : high.key[i];
        }
        mine.take(other.exchanged(bit));
        return mine;
    }
};

/// The nearest four keys of one row that one thread has seen, in order.
template <class Sum>
struct NearestFour {
    Sum key[4];

    /// The nearest two of some columns and the nearest two of others.
    __device__ static NearestFour of(const Best<Sum, 2>& a, const Best<Sum, 2>& b) {
        const Sum greater = max(a.key[0], b.key[0]), lesser = min(a.key[1], b.key[1]);
        return {min(a.key[0], b.key[0]), min(greater, lesser), max(greater, lesser), max(a.key[1], b.key[1])};
    }
    __device__ void clear() {
        for (Sum& k : key) set_worst(k);
    }
    /// Two keys at once: of two sorted rows the i-th is the least of the greater ones of all pairs that stand i apart.
    __device__ void take(Sum a, Sum b) {
        const Sum low = min(a, b), high = max(a, b);
        key[3] = least(max(key[2], low), max(key[1], high), key[3]);
        key[2] = least(max(key[1], low), max(key[0], high), key[2]);
        key[1] = least(max(key[0], low), high, key[1]);
        key[0] = min(key[0], low);
    }
    __device__ void drop_first() {
#pragma unroll
        for (int i = 0; i < 3; ++i) key[i] = key[i + 1];
        set_worst(key[3]);
    }
};

}  // namespace gnnd::cuda
