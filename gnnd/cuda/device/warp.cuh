// SPDX-License-Identifier: MIT
#pragma once
/// \file warp.cuh
/// Small pieces that all kernels share.

#include <cstdint>

namespace gnnd::cuda {

using u32 = std::uint32_t;
using u64 = unsigned long long;

inline constexpr int kWarp = 32;
inline constexpr u32 kAllLanes = 0xffffffffu;
/// No object. As an entry of a list: with the NEW bit taken off, larger than every id.
inline constexpr u32 kNoId = 0x7fffffffu;
/// Set in a list's id while the entry is NEW.
inline constexpr u32 kNewBit = 0x80000000u;

/// Blocks that n items need.
inline unsigned blocks_for(std::int64_t n, int per_block) {
    return unsigned((n + per_block - 1) / per_block);
}

__device__ inline int lane_id() {
    return int(threadIdx.x % kWarp);
}

/// Counts one more where the condition holds, without the branch that a compiler makes of it: what follows a branch
/// waits for the memory of what was in it, so that a thread's atomics would wait one after the other.
/// \param before  set to the count before, where the condition holds
__device__ inline void count_if(bool condition, u32* count, u32& before) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p atom.global.add.u32 %0, [%1], 1;}"
                 : "+r"(before)
                 : "l"(count), "r"(u32(condition))
                 : "memory");
}
/// Stores the value where the condition holds, without a branch.
__device__ inline void store_if(bool condition, u64* to, u64 value) {
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u64 [%0], %1;}" ::"l"(to), "l"(value),
                 "r"(u32(condition))
                 : "memory");
}

/// The device's clock.
__device__ inline u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

/// The number of lanes below this one that have their bit set.
__device__ inline int rank_in(u32 ballot) {
    return __popc(ballot & ((1u << lane_id()) - 1));
}

/// The sum over the warp, in all lanes.
template <class T>
__device__ T warp_sum(T value) {
    for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
    return value;
}

/// A well mixed 32-bit hash (the finaliser of MurmurHash3).
__host__ __device__ inline u32 mix(u32 x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

/// A number in [0, n) from a hash, without the bias and the cost of a remainder.
__host__ __device__ inline u32 scaled(u32 hash, u32 n) {
    return u32((u64(hash) * n) >> 32);
}

/// (distance, id) orders candidates and entries everywhere.
__host__ __device__ inline bool nearer(float da, u32 a, float db, u32 b) {
    return da < db || (da == db && a < b);
}

/// A candidate in a buffer: the distance above, the id below.
__device__ inline u64 pack(float distance, u32 id) {
    return u64(__float_as_uint(distance)) << 32 | id;
}
__device__ inline float distance_of(u64 candidate) {
    return __uint_as_float(u32(candidate >> 32));
}
__device__ inline u32 id_of(u64 candidate) {
    return u32(candidate);
}

}  // namespace gnnd::cuda
