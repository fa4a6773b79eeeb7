// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep_args.h
/// All pairs of a set, once: the arguments of the kernels that compare them against a bound per object.
///
/// The sum of a pair is its product, or, without tensor cores, its distance negated: larger is nearer. A pair (a, b) is
/// a hit for a if its distance may be less than a's bound, the last distance of a's list. Every object has two
/// thresholds, which thresholds.cu makes from its norm and its bound:
///
///     the pair is a hit for a   if   sum + offset(b) > -limit(a)
///                      for b    if   sum + limit(b) > -offset(a)
///
/// so that a maximum over many columns, of one sum for each, says whether there is any hit among them.

#include "gnnd/cuda/device/state.cuh"

namespace gnnd::cuda {

/// On tensor cores: rows of a panel, which a block compares with panel after panel of all objects; and columns that it
/// takes at a time.
inline constexpr int kPanelRows = 256, kPanelColumns = 128;
/// Without them: rows of a panel and columns alike.
inline constexpr int kFloatRows = 128;

/// What is compared.
enum class Compared {
    pairs,   ///< all objects, every pair once
    chosen,  ///< chosen rows with all objects
    sample   ///< all objects with some of them, whose largest sums are kept: no hits
};

/// Of a row's sums with a group of columns of a sample the largest of each class of columns: so many.
inline constexpr int kMaxima = 32;

/// Bit patterns of int or of float, as the sums are. Arrays of them go on to a whole number of panels, and no pair with
/// what lies behind the end is a hit.
struct Threshold {
    u32 offset, limit;
};

struct SweepArgs {
    const Threshold *of_rows, *of_columns;
    const u32* row_ids;  ///< of rows that were chosen: the objects
    u32 rows;            ///< objects, or chosen ones
    u32 columns;         ///< objects, or those of a sample
    u32 border;      ///< of all objects: pairs on one side of it are known, but where a panel has some of both; 0: none
    u32 begin, end;  ///< of all objects: the offsets between panels; of chosen rows: the panels of columns
    Candidates hits;  ///< of the rows; entries hold an id, and no distance yet
    int high_tiles;   ///< of rows that are split (TileOrder); 0: they are not
    u32* maxima;      ///< of a sample: rows x groups of columns x kMaxima, with offsets, written
};

/// Tiles of h in a row that is split.
inline int high_tiles_of(std::int64_t d) {
    return int((2 * d + kTileBytes - 1) / kTileBytes);
}

/// The tiles of kTileBytes of a row and a column whose products are summed up: each with its own; of rows that are
/// split, h and l behind it in as many tiles, h with l, l with h and h with h: the small ones first, see bounds.h.
struct TileOrder {
    int stored, high;

    __host__ __device__ TileOrder(int row_bytes, int high_tiles)
        : stored((row_bytes + kTileBytes - 1) / kTileBytes), high(high_tiles) {}
    __host__ __device__ int count() const { return stored + high; }
    __device__ int of_row(int k) const { return k < stored ? k : k - stored; }
    __device__ int of_column(int k) const { return k < high ? k + high : k < stored ? k - high : k - stored; }
};

/// Panels that n objects need.
__host__ __device__ inline u32 panels_of(u32 n, u32 size) {
    return (n + size - 1) / size;
}

/// Of so many offsets or panels of columns how many a block takes at least: a grid has no more than 65535 in y.
inline u32 least_per_block(u32 width) {
    return panels_of(width, 65535);
}

/// Every pair of panels is compared once if panel i is compared with the panels i, i + 1, ..., up to so many, modulo
/// their number.
__host__ __device__ inline u32 offsets_of(u32 panel, u32 panels) {
    return panels / 2 + (panels % 2 == 1 || panel < panels / 2);
}

/// The tiles of columns that a block compares its panel of rows with.
/// \tparam Both  every pair of all objects is compared once
/// \tparam Rows, Columns  of a panel, and of a tile
/// \tparam Share  so many blocks, neighbours in x, take every Share-th tile each
template <bool Both, u32 Rows, u32 Columns, u32 Share = 1>
struct TileWalk {
    u32 panel, panels;  ///< of rows; panels: of columns
    u32 begin, count;   ///< the first offset (or panel) of this block, and tiles

    static constexpr u32 kTilesOfPanel = Rows / Columns / Share;
    static_assert(kTilesOfPanel * Columns * Share == Rows);

    /// \param per_block  offsets (or panels) of a block
    __device__ TileWalk(const SweepArgs& args, u32 per_block)
        : panel(blockIdx.x / Share), panels(panels_of(args.columns, Rows)), begin(args.begin + blockIdx.y * per_block) {
        u32 end = min(args.end, begin + per_block);
        if (Both) end = min(end, offsets_of(panel, panels));
        if (Both && args.border != 0) skip_known(args.border / Rows, end);
        count = end > begin ? (end - begin) * kTilesOfPanel : 0;
    }
    /// Before the border's panel, offsets to that one and those behind it; behind it, to the first ones, and to that
    /// one.
    __device__ void skip_known(u32 border, u32& end) {
        if (panel < border) {
            begin = max(begin, border - panel);
            end = min(end, panels - panel);
        } else if (panel > border) {
            begin = max(begin, panels - panel);
            end = min(end, panels - panel + border + 1);
        }
    }
    __device__ u32 panel_of(u32 i) const {
        const u32 at = begin + i / kTilesOfPanel;
        if (!Both) return at;
        return panel + at < panels ? panel + at : panel + at - panels;
    }
    __device__ u32 first_column(u32 i) const {
        return panel_of(i) * Rows + (i % kTilesOfPanel * Share + blockIdx.x % Share) * Columns;
    }
    /// Rows and columns are the same objects: every pair is there twice.
    __device__ bool diagonal(u32 i) const { return Both && panel_of(i) == panel; }
};

/// Adds a hit of a row.
__device__ inline void put_hit(const Candidates& hits, u32 row, u32 id) {
    const u32 place = atomicAdd(&hits.counts[row], 1u);
    if (place < u32(hits.capacity)) hits.entries[u64(row) * u32(hits.capacity) + place] = id;
}

}  // namespace gnnd::cuda
