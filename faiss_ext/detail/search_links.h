#pragma once
/// \file search_links.h
/// From a k-NN graph to the links that a greedy search walks along.

#include <faiss/IndexFlat.h>

#include <cstdint>
#include <vector>

#include "gnnd/graph.h"

namespace faiss_ext::detail {

/// At most `degree` links per object, all objects reachable from the entry.
struct SearchLinks {
    int degree = 0;
    std::int32_t entry = 0;
    std::vector<std::int32_t> ids;  ///< n x degree, -1 at the end of rows with fewer

    const std::int32_t* of(std::int64_t i) const { return ids.data() + i * degree; }
};

/// Made in four steps; the result is the same on any number of threads.
///  1. Of an object's row, nearest first, those are linked that lie nearer to it than to any linked before them (the
///     rule of relative neighbourhoods, which HNSW and NSG prune by).
///  2. Links are added in the other direction too while there is room, nearest first.
///  3. The rest of the row fills what room is left.
///  4. Objects that cannot be reached from the entry, the one nearest to the mean, are searched for as a query would
///  be,
///     and linked from the nearest object found. Where that is full, its last link that reachability does not need
///     makes room.
/// \param storage  the n vectors, whose distances decide
/// \param graph    n x k, valid
SearchLinks make_search_links(const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph, int degree);

}  // namespace faiss_ext::detail
