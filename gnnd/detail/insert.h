// SPDX-License-Identifier: MIT
#pragma once
/// \file insert.h
/// append() inserts objects into a graph by searching it, on either backend, batch after batch:
///  1. every object of the batch is compared with pivots, a sample of the graph's objects, and with the whole batch:
///     the nearest pivots are where its search starts, the nearest of the batch are its peers;
///  2. a greedy search with a beam walks from there along the rows of the graph, and of other objects of the batch
///     along their peers, so that a batch far from all others finds itself. The nearest that it has met become the
///     object's row;
///  3. the object is offered to all that it has met, near or far, whose rows take it in: those whose last entry is
///     farther than it. The batch belongs to the graph from here on.

#include <algorithm>
#include <cstdint>

#include "gnnd/graph.h"

namespace gnnd::detail {

/// Entries of a row that are looked at, the nearest.
inline constexpr int kBranches = 64;
/// Some objects are in nobody's row, or in few, and rows alone do not lead to them. So objects are linked back from the
/// first kLinkedColumns of their row, where those do not hold them; each has kBackLinks places for such links.
inline constexpr int kLinkedColumns = 16, kBackLinks = 16;
/// Objects nearest to the searched one whose rows are walked along, with links back and without. Measured: about as
/// good as each other, with twice as many distances without.
inline constexpr int kBeam = 80, kWideBeam = 192;

/// Links back take a pass over the whole graph, which pays from one added object for so many old ones.
inline bool links_back(std::int64_t old, std::int64_t added) {
    return added * 1000 >= old;
}
inline int beam_for(std::int64_t old, std::int64_t added) {
    return links_back(old, added) ? kBeam : kWideBeam;
}

/// Objects that are measured after `added` were searched for. The measurement compares each with all n, and is to cost
/// no more than the searches, of some thousand distances each, would with so many comparisons.
/// \param gain   pairs that are compared in the time of one distance of a search, where all are
/// \param least  objects
inline std::int64_t measured_after(std::int64_t added, std::int64_t n, double gain, std::int64_t least) {
    constexpr double kDistances = 8000;
    return std::max(least, std::int64_t(kDistances * gain * double(added) / double(n)));
}

/// The i-th of `pivots` pivots among n objects: one at random of each of as many ranges, so that none comes twice.
GNND_HOST_DEVICE inline std::uint32_t pivot(std::uint32_t i, std::uint32_t pivots, std::uint32_t n,
                                            std::uint32_t hash) {
    const std::uint64_t begin = std::uint64_t(i) * n / pivots, end = std::uint64_t(i + 1) * n / pivots;
    return std::uint32_t(begin + ((end - begin) * hash >> 32));
}

}  // namespace gnnd::detail
