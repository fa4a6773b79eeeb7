// SPDX-License-Identifier: MIT
#pragma once
/// \file sort_node.cuh
/// Step 1 of GNND, one level of a projection tree: the objects of a node by their pivots, where shared memory holds
/// them.

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>

#include "gnnd/cuda/device/warp.cuh"

namespace gnnd::cuda {

inline constexpr int kItemsToSort = 8;  ///< of a thread
inline constexpr int kPivotBits = 5;    ///< as many as a node has that a block sorts, and one digit of its sort

/// A block a node. Those of one pivot stay in their order.
/// \param keys   n: see AssignToPivotsArgs
/// \param order  n, changed
/// \param node   objects of a node, at most kItemsToSort x Threads; the last one may have fewer
template <int Threads>
__global__ void __launch_bounds__(Threads)
    sort_node_kernel(const u32* keys, u32* order, std::int64_t n, std::int64_t node, int pivots) {
    using Load = cub::BlockLoad<u32, Threads, kItemsToSort, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<std::uint8_t, Threads, kItemsToSort, u32, kPivotBits>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
    } memory;
    const std::int64_t begin = std::int64_t(blockIdx.x) * node;
    const int count = int(min(node, n - begin));
    const u32 first = blockIdx.x * u32(pivots), last = first + u32(pivots) - 1;  // behind the end: they stay there
    u32 key[kItemsToSort], object[kItemsToSort];
    std::uint8_t pivot[kItemsToSort];
    Load(memory.load).Load(keys + begin, key, count, last);
    __syncthreads();
    Load(memory.load).Load(order + begin, object, count, 0u);
    __syncthreads();
    for (int i = 0; i < kItemsToSort; ++i) pivot[i] = std::uint8_t(key[i] - first);
    Sort(memory.sort).SortBlockedToStriped(pivot, object, 0, kPivotBits);
    for (int i = 0; i < kItemsToSort; ++i) {
        const int place = i * Threads + int(threadIdx.x);
        if (place < count) order[begin + place] = object[i];
    }
}

}  // namespace gnnd::cuda
