// SPDX-License-Identifier: MIT
#pragma once
/// \file kernels.h
/// Distances of small blocks of vectors, vectorised for the instruction sets of x86-64 and picked at run time.
///
/// Rows are first gathered into a tile: a dense block in the working type of the metric and dtype (where the metric is
/// a product and components are bytes, bytes or int16, as the instruction set has products; float32 otherwise), a slice
/// of at most kSlice bytes per row at a time, padded with zeros, which change no metric. Those that serve as columns
/// are packed into panels: the first four bytes of 16 rows, the next four of the same, and so on. So a column is a
/// lane, no sum is ever joined across lanes, no kernel knows a remainder, and a pair's value is the same in every
/// block.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnnd/dtype.h"
#include "gnnd/metric.h"

namespace gnnd::cpu {

enum class Isa { baseline, avx2, avx512, avx512vnni };

/// The instruction sets that this processor runs, best last.
std::vector<Isa> supported_isas();
const char* name_of(Isa isa);

inline constexpr std::size_t kSlice = 512;  ///< most bytes of a tile's row
inline constexpr int kPanelColumns = 16;
/// Bytes of a panel: a slice of its columns, and four bytes for each that only the kernels know.
inline constexpr std::size_t kPanelBytes = kPanelColumns * (kSlice + 4);

inline constexpr int kSpareHits = 16;  ///< places behind hits

/// Of the slices of a row, those before and after the one at hand. Sums of integers stay integers in between.
struct Slices {
    bool continues;  ///< there were slices before: their sums are in `out`
    bool more;       ///< others follow
};

/// The kernels of one metric, dtype and instruction set. Everything is in plain pointers: see kernels_isa.cpp.
struct Kernels {
    std::size_t element;  ///< bytes of one component in a tile: 1, 2 (int16) or 4 (float32)

    /// Converts components [begin, begin + width) of rows ids[0..count) to rows of as many bytes as these take, padded
    /// with zeros to a multiple of 64. (Rows kSlice apart would share few sets of the cache where they are shorter.)
    /// ids may be null: rows 0..count then.
    void (*gather)(const std::byte* base, std::int64_t row_bytes, const std::int32_t* ids, int count,
                   std::int64_t begin, int width, void* tile);

    /// Packs the first `count` rows of a tile, of `width` components, into panels; the rows that fill up the last panel
    /// are read, too.
    void (*pack)(const void* tile, int count, int width, void* panels);

    /// out[i * ldo + j] for row i of tile a and column j of panels b over `width` components, joined with the slices
    /// before. Columns that fill up the last panel may be written, too: ldo is a multiple of kPanelColumns.
    /// `triangular`: a and b begin with the same rows, and values with j <= i are not needed.
    void (*block)(const void* a, int rows, const void* b, int columns, int width, float* out, int ldo, Slices slices,
                  bool triangular);

    /// out[p] for row p of panels a and row p of panels b, as block() computes it; null where components are bytes or
    /// int16. Written up to the last panel's end.
    void (*pairs)(const void* a, const void* b, int count, int width, float* out, Slices slices);

    /// out[i]: the key of row x and row ids[i] of `rows`, which are read where they lie: for few pairs, whose rows come
    /// from memory. A pair's key is the same in every call, but not that of a block. Null unless the working type is
    /// that of memory and the metric not normalized. out has room for a multiple of kPanelColumns.
    void (*keys_to)(const float* x, const float* rows, std::int64_t d, const std::int32_t* ids, int count, float* out);

    /// Turns accumulated values into keys, where smaller is nearer: normalises and negates as the metric demands.
    /// scale_a and scale_b: inverse norms, null unless the metric is normalized.
    void (*finish)(float* out, int rows, int columns, int ldo, const float* scale_a, const float* scale_b);

    /// The smallest of row[begin..end) and where it stands; end > begin.
    int (*nearest)(const float* row, int begin, int end);
    /// For every j in [begin, end) where row[j] < best[j]: best[j] = row[j], index[j] = i.
    void (*keep_nearer)(const float* row, int begin, int end, int i, float* best, std::int32_t* index);
    /// The j in [begin, end) where row[j] <= bound or row[j] <= bounds[j]; returns how many. hits has room for
    /// kSpareHits more than there may be.
    int (*within)(const float* row, int begin, int end, float bound, const float* bounds, std::int32_t* hits);
};

/// Takes those of `offers` into an ascending list that are less than its last entry, not above `limit` and not in it;
/// returns how many. Entries are those of lists.h, those offered are marked NEW.
using TakeEntries = int (*)(std::uint64_t* list, int length, const std::uint64_t* offers, int count,
                            std::uint64_t limit);
TakeEntries taker(Isa isa);

/// \param d  components of a row: sums of products of bytes are integers up to kMaxIntegerDim
Kernels kernels(Metric metric, DType dtype, std::int64_t d, Isa isa);

}  // namespace gnnd::cpu
