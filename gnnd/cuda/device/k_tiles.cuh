// SPDX-License-Identifier: MIT
#pragma once
/// \file k_tiles.cuh
/// Rows longer than kTileBytes pass through shared memory in tiles of so many bytes, and the products of all tiles add
/// up. Here is that loop, once for all kernels that compare rows.

#include "gnnd/cuda/device/wgmma.cuh"

namespace gnnd::cuda {

/// Calls use(k, stage, steps) for the k-th tile of the rows, k = 0, 1, ...: `stage` is where it lies in shared memory,
/// `steps` how many steps of kStep bytes of it hold components. fetch(k, stage) starts the loads and commits them. By
/// all threads of a block.
/// \tparam Stages     2: the next tile is under way meanwhile, in a stage of its own. Stages are stage_bytes apart
/// \tparam ForGroups  multiply_group() follows, which reads shared memory in its own way
template <int Stages, bool ForGroups, class Fetch, class Use>
__device__ __forceinline__ void for_each_k_tile(std::uint8_t* memory, int stage_bytes, const Points& points,
                                                const Fetch& fetch, const Use& use) {
    static_assert(Stages == 1 || Stages == 2);
    const int k_tiles = (points.row_bytes + kTileBytes - 1) / kTileBytes;
    if constexpr (Stages == 2) fetch(0, memory);
    for (int k = 0; k < k_tiles; ++k) {
        std::uint8_t* stage = memory + k % Stages * stage_bytes;
        if constexpr (Stages == 1) {
            fetch(k, stage);
            wait_loads<0>();
        } else if (k + 1 < k_tiles) {
            fetch(k + 1, memory + (k + 1) % Stages * stage_bytes);
            wait_loads<1>();
        } else {
            wait_loads<0>();
        }
        if constexpr (ForGroups) publish_rows();
        __syncthreads();
        use(k, stage, min(kTileBytes, points.row_bytes - k * kTileBytes) / kStep);
        __syncthreads();
    }
}

/// Adds the products of this warp's 16 rows, from tile row `first` on, with Tiles * 8 others, from tile row `column`
/// on, over all tiles of the rows. wanted(t) says whether the t-th eight of them counts.
template <class Arithmetic, int Tiles, class Fetch, class Wanted>
__device__ __forceinline__ void multiply_rows(typename Arithmetic::Sum (&sums)[Tiles][4], std::uint8_t* tile, int first,
                                              int column, const Points& points, const Fetch& fetch,
                                              const Wanted& wanted) {
    for_each_k_tile<1, false>(tile, 0, points, fetch, [&](int, const std::uint8_t* stage, int steps) {
        typename Arithmetic::Rows rows;
        Arithmetic::load(rows, stage, first, steps);
#pragma unroll
        for (int t = 0; t < Tiles; ++t)
            if (wanted(t)) Arithmetic::multiply(sums[t], rows, stage, column + t * kTileColumns, steps);
    });
}

inline constexpr int kBlockRows = 64;     ///< rows of a block that compares with many columns, 16 per warp
inline constexpr int kBlockColumns = 64;  ///< columns that it compares with at a time

/// The shared memory of such a block.
template <class Arithmetic>
struct BlockMemory {
    static constexpr int kTiles = kBlockColumns / kTileColumns;
    using Sums = typename Arithmetic::Sum[kTiles][4];

    alignas(128) std::uint8_t tile[(kBlockRows + kBlockColumns) * kTileBytes];
    u32 ids[kBlockRows + kBlockColumns];
    typename Arithmetic::Sum terms[kBlockColumns];

    /// Adds to the sums; `rows` and `columns` of the ids count. Rows of one tile stay from the first call on.
    __device__ __forceinline__ void multiply(Sums& sums, int rows, int columns, bool first_call, const Points& points) {
        multiply_rows<Arithmetic, kTiles>(
            sums, tile, threadIdx.x / kWarp * kTileRows, kBlockRows, points,
            [&](int k, std::uint8_t* stage) {
                if (points.row_bytes > kTileBytes || first_call)
                    load_rows<2 * kBlockRows, kBlockRows>(stage, 0, ids, rows, kBlockRows, points, k);
                load_rows<2 * kBlockRows, kBlockColumns>(stage, kBlockRows, ids + kBlockRows, columns, kBlockColumns,
                                                         points, k);
                commit_loads();
            },
            [](int) { return true; });
    }
};

}  // namespace gnnd::cuda
