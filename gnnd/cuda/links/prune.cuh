// SPDX-License-Identifier: MIT
#pragma once
/// \file prune.cuh
/// Step 1 of search_links() chooses the links of an object among its nearest neighbours. To know which of them block
/// which others takes the distances of all their pairs, a product of matrices; the choice itself is a walk over bits.

#include "gnnd/cuda/device/k_tiles.cuh"
#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/engine/engine.h"
#include "gnnd/search_links.h"

namespace gnnd::cuda {

/// A block an object. T: entries of a row that it has room for, a multiple of a warp; `entries`: those that count.
///
/// Distances from the object to its entries are computed along with those between them, not taken from the graph: so
/// equal vectors have equal distances whatever the cells round.
template <class Arithmetic, int T>
__global__ void __launch_bounds__(2 * T) prune_kernel(Points points, PruneArgs args, int entries) {
    using Sum = typename Arithmetic::Sum;
    using Keys = Key<Sum, false>;
    constexpr int kColumns = T + kTileColumns;  // the entries and the object
    constexpr int kTiles = kColumns / kTileColumns, kWords = T / kWarp, kTilesOfWord = kWarp / kTileColumns;
    __shared__ __align__(128) std::uint8_t tile[kColumns * kTileBytes];
    __shared__ u32 ids[kColumns];
    __shared__ Sum terms[kColumns];
    __shared__ u32 blockers[T][kWords];  // bit c of row r: if c is a link, r is none
    const std::int64_t out = args.first + blockIdx.x;
    const std::int64_t object = args.objects == nullptr ? out : args.objects[out];
    if (threadIdx.x < kColumns) {
        u32 id = threadIdx.x < entries ? u32(args.graph[object * args.k + threadIdx.x]) : u32(object);
        if (id >= u32(points.n)) id = u32(object);  // stands for none
        ids[threadIdx.x] = id;
        terms[threadIdx.x] = Keys::term(points, id, 0);
    }
    __syncthreads();

    const int stripe = threadIdx.x / kWarp * kTileRows;
    const int end = stripe < entries ? stripe + kTileRows : 0;  // columns that this warp's rows need
    Sum sums[kTiles][4] = {};
    multiply_rows<Arithmetic, kTiles>(
        sums, tile, stripe, 0, points,
        [&](int k_tile, std::uint8_t*) {
            load_rows<2 * T, T>(tile, 0, ids, entries, T, points, k_tile);
            load_rows<2 * T, kTileColumns>(tile, T, ids + T, 1, kTileColumns, points, k_tile);
            commit_loads();
        },
        [&](int t) { return t * kTileColumns < end || t == kTiles - 1; });
    const Sum factor = Keys::factor(points);
    const int row = stripe + lane_id() / 4, column = lane_id() % 4 * 2;  // and row + 8, column + 1 of every tile
    Sum own[2];                                                          // keys of the object for both rows
#pragma unroll
    for (int i = 0; i < 2; ++i)
        own[i] = Keys::plain(__shfl_sync(kAllLanes, sums[kTiles - 1][2 * i], lane_id() / 4 * 4), factor, terms[T]);
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
        u32 bits[2] = {0, 0};
#pragma unroll
        for (int t = 0; t < kTilesOfWord; ++t)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int bit = t * kTileColumns + column + i % 2, r = row + i / 2 * 8, c = word * kWarp + bit;
                if (c >= r || r >= entries) continue;
                const Sum key = Keys::plain(sums[word * kTilesOfWord + t][i], factor, terms[c]);
                if (!(key > own[i / 2]) || ids[c] == ids[r]) bits[i / 2] |= 1u << bit;
            }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            bits[i] |= __shfl_xor_sync(kAllLanes, bits[i], 1);
            bits[i] |= __shfl_xor_sync(kAllLanes, bits[i], 2);
            if (lane_id() % 4 == i) blockers[row + i * 8][word] = bits[i];
        }
    }
    __syncthreads();
    if (threadIdx.x >= kWarp) return;

    u32 linked = 0;  // of the entries from lane * 32 on
    int size = 0;
    for (int r = 0; r < entries && size < args.links.degree; ++r) {
        if (ids[r] == u32(object)) continue;
        const bool blocked = lane_id() < kWords && (blockers[r][lane_id()] & linked) != 0;
        if (__any_sync(kAllLanes, blocked)) continue;
        if (lane_id() == r / kWarp) linked |= 1u << r % kWarp;
        ++size;
    }
    int at = 0;
    for (int word = 0; word < kWords; ++word) {
        const u32 here = __shfl_sync(kAllLanes, linked, word);
        if (here >> lane_id() & 1) {
            const u32 id = ids[word * kWarp + lane_id()];
            args.links.ids[out * args.links.degree + at + rank_in(here)] = std::int32_t(id);
            if (args.links.counts != nullptr) atomicAdd(&args.links.counts[id], 1u);
        }
        at += __popc(here);
    }
    if (lane_id() == 0) args.links.sizes[out] = u32(size);
}

}  // namespace gnnd::cuda
