#pragma once
/// \file best.cuh
/// Selective update's choice: the nearest partner of each row of a tile, or the nearest two.

#include "gnnd/cuda/device/tile.cuh"

namespace gnnd::cuda {

__device__ inline int least(int a, int b, int c) {
    return __vimin3_s32(a, b, c);  // one instruction on Hopper
}
__device__ inline float least(float a, float b, float c) {
    return fminf(a, fminf(b, c));
}

/// What no key beats.
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
    /// Joins what this lane keeps with what the lane on the other side of the bit keeps of the same row.
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

}  // namespace gnnd::cuda
