// SPDX-License-Identifier: MIT
#pragma once
/// \file append_rows.h
/// append() of a few vectors to a graph that its owner changes in place, at a cost that their number decides.

#include <cstdint>
#include <vector>

#include "gnnd/array.h"
#include "gnnd/builder.h"

namespace gnnd::detail {

/// What comes to lie in a column of a row.
struct RowEntry {
    std::int32_t column, id;
    float distance;
};

/// What an append changes in a graph. Most rows that change take in one added object or two, so that what is told of
/// them is what is new there, a sixtieth of the entries of such rows (k = 64).
struct AppendedRows {
    std::vector<std::int32_t> objects;  ///< old ones whose rows change, ascending
    std::vector<std::int64_t> ends;     ///< of each, where its entries end
    Array<RowEntry> entries;            ///< by column: added objects; or the whole row, where other things change in it
    KnnGraph added;                     ///< the rows of the added objects
    BuildStats stats;                   ///< without a recall

    std::int64_t begin_of(std::size_t c) const { return c == 0 ? 0 : ends[c - 1]; }
    /// Changes the row of objects[c], k columns; the entries hold what has left it then.
    void put_in(std::size_t c, std::int32_t* ids, float* distances, std::int64_t k);
    /// The row is as before put_in(), and so are the entries.
    void take_out(std::size_t c, std::int32_t* ids, float* distances, std::int64_t k);
};

/// Adds what is to be told of a changed row.
/// \param before, after  one row each
/// \param old            objects from this one on were added
void tell_row(AppendedRows& told, std::int32_t object, const KnnGraphView& before, const KnnGraphView& after,
              std::int64_t old);

inline constexpr std::int64_t kMostAppended = 1024;  ///< vectors at once

/// append() by searching, on the CPU. Nothing is measured, and the graph is not checked.
/// \param vectors  n x d in host memory: those of the graph, then 1 to kMostAppended added ones
/// \param graph    of the first of them, params.k columns and more objects than that
/// \param params   validated; `recall` is not looked at
/// \throws InvalidArgument that names an added vector which no metric can work with, Interrupted, std::bad_alloc
AppendedRows append_rows(const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params,
                         const Callbacks& callbacks);

}  // namespace gnnd::detail
