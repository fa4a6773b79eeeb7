// SPDX-License-Identifier: MIT
#pragma once
/// \file fold.h
/// From the graph of two sets into the lists of one of them, whose objects are part of a larger whole: a shard, or a
/// part of a set.

#include <cstdint>

#include "gnnd/graph.h"

namespace gnnd::detail {

/// The other shard of a merged pair: which ids of the result are its objects, and which objects of the whole set these
/// are.
struct Partner {
    std::int32_t first, last;  ///< ids [first, last) of the result
    std::int64_t begin;        ///< what `first` is in the whole set
};

/// Takes the partner's objects among the found neighbours into the lists and keeps the best k of each. Entries of the
/// shard itself, which its lists have seen, and -1 are passed over. The lists must not have seen the partner before.
/// The order in which partners come does not matter.
/// \param found      a row per object of the shard, as merge_into() gives them: sorted, its metric that of the lists
/// \param ids        found.n x k, the lists, which follow the invariants of graph.h with ids over the whole set
/// \param distances  found.n x k
/// \tparam Id        std::int32_t, or std::int64_t where the whole set may have more than kMaxObjects
/// \return entries that came in
template <class Id>
std::int64_t fold(const KnnGraphView& found, const Partner& partner, std::int64_t k, Id* ids, float* distances,
                  int threads);

/// Copies a graph's rows, for which ids and distances may be its own.
/// \param shift  is added to its ids, but for -1
/// \tparam Id    as above
template <class Id>
void put_rows(const KnnGraphView& graph, std::int64_t shift, Id* ids, float* distances, int threads);

}  // namespace gnnd::detail
