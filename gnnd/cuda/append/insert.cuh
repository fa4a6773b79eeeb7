// SPDX-License-Identifier: MIT
#pragma once
/// \file insert.cuh
/// The arrays that the kernels of append() by searching share.

#include "gnnd/cuda/device/sorted_list.cuh"
#include "gnnd/detail/insert.h"

namespace gnnd::cuda {

inline constexpr int kInsertWarps = 4;  ///< of a block

/// The vectors of both sets.
struct Sets {
    const std::byte* data[2];  ///< where object 0 would be
    u32 stride[2];
    u32 second;  ///< the first object of the second set
    std::int64_t d;
    bool whole;  ///< all rows begin at and consist of whole 16 bytes

    template <class T>
    __device__ const T* row(u32 id) const {
        const bool other = id >= second;
        return reinterpret_cast<const T*>((other ? data[1] : data[0]) + u64(id) * (other ? stride[1] : stride[0]));
    }
};

/// The objects where searches start: see detail::pivot().
struct Pivots {
    u32 count, n, seed;
    __device__ u32 object(u32 i) const { return detail::pivot(i, count, n, mix(seed ^ mix(i))); }
};

/// Objects that a row does not hold but that hold its object, of some of them: what a graph's rows alone do not lead
/// to.
struct BackLinks {
    std::int32_t* ids;  ///< n x kBackLinks, -1 for none
    float* reach;       ///< n: key of the last entry that is looked at; none is kept beyond
    u32 n;              ///< 0: no object has any
};

/// The objects [first, first + count) that are being inserted.
struct Batch {
    u32 first, count;
    const u32 *starts, *peers;  ///< count x start_count pivots, count x peer_count objects of the batch; kNoId: none
    int start_count, peer_count;
    int length;  ///< nearest ones that a search keeps
    u64* met;    ///< count x offers_each: whom the searches have met that take the object in; kNothing: none
    int offers_each;
    u32* offer_numbers;  ///< like met: the number of this offer among those to its row; kNoId: none
    u32* counts;         ///< n: how many; 0 before
    u64* offsets;        ///< n and one: where they begin
    u64* offers;         ///< ranked entries
};

struct InsertCounters {
    u64 offered, accepted, distances, entries;
    double phi;
};

/// A warp's part of its block's dynamic shared memory.
__device__ inline std::byte* memory_of_warp(int bytes) {
    extern __shared__ __align__(16) std::byte insert_memory[];
    return insert_memory + threadIdx.x / kWarp * bytes;
}

}  // namespace gnnd::cuda
