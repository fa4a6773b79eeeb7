#pragma once
/// \file prune.cuh
/// Step 1 of search_links(): which of an object's nearest neighbours become its links. Whether one may block another
/// needs the distances of all their pairs, a product of matrices; the choice itself is a walk over bits.

#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/device/tile.cuh"
#include "gnnd/search_links.h"

namespace gnnd::cuda {

/// A block an object. T: entries of a row that it has room for, a multiple of a warp; `entries`: those that count.
///
/// Distances from the object to its entries are computed along with those between them, not taken from the graph: so
/// equal vectors have equal distances whatever the cells round.
template <class Engine, int T>
__global__ void __launch_bounds__(2 * T) prune_kernel(Points points, const std::int32_t* graph, std::int64_t k,
                                                      int entries, Links links, std::int64_t first) {
    using Sum = typename Engine::Sum;
    using Keys = Key<Sum, false>;
    constexpr int kColumns = T + kTileColumns;  // the entries and the object
    constexpr int kTiles = kColumns / kTileColumns, kWords = T / kWarp, kTilesOfWord = kWarp / kTileColumns;
    __shared__ __align__(128) std::uint8_t tile[kColumns * kSlab];
    __shared__ u32 ids[kColumns];
    __shared__ Sum terms[kColumns];
    __shared__ u32 blockers[T][kWords];  // bit c of row r: if c is a link, r is none
    const std::int64_t object = first + blockIdx.x;
    if (threadIdx.x < kColumns) {
        u32 id = threadIdx.x < entries ? u32(graph[object * k + threadIdx.x]) : u32(object);
        if (id >= u32(points.n)) id = u32(object);  // stands for none
        ids[threadIdx.x] = id;
        terms[threadIdx.x] = Keys::term(points, id, 0);
    }
    __syncthreads();

    const int stripe = threadIdx.x / kWarp * kTileRows, slabs = (points.row_bytes + kSlab - 1) / kSlab;
    const int end = stripe < entries ? stripe + kTileRows : 0;  // columns that this warp's rows need
    Sum sums[kTiles][4] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        load_rows<2 * T>(tile, 0, ids, entries, T, points, slab);
        load_rows<2 * T>(tile, T, ids + T, 1, kTileColumns, points, slab);
        commit_loads();
        wait_loads<0>();
        __syncthreads();
        const int steps = min(kSlab, points.row_bytes - slab * kSlab) / kStep;
        typename Engine::Rows rows;
        Engine::load(rows, tile, stripe, steps);
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
            if (t * kTileColumns < end || t == kTiles - 1)
                Engine::multiply(sums[t], rows, tile, t * kTileColumns, steps);
        __syncthreads();
    }

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
    for (int r = 0; r < entries && size < links.degree; ++r) {
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
            links.ids[object * links.degree + at + rank_in(here)] = std::int32_t(id);
            atomicAdd(&links.counts[id], 1u);
        }
        at += __popc(here);
    }
    if (lane_id() == 0) links.sizes[object] = u32(size);
}

}  // namespace gnnd::cuda
