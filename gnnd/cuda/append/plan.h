// SPDX-License-Identifier: MIT
#pragma once
/// \file plan.h
/// The device memory of append() by searching.

#include "gnnd/cuda/memory/plan.h"

namespace gnnd::cuda {

/// Pivots that the objects of a batch are compared with. Chosen by measurement (benchs/NOTEBOOK.md).
inline constexpr std::int64_t kInsertPivots = 8192;
/// Nearest ones of a batch that an object is linked to, and nearest pivots that it starts from, at least.
inline constexpr std::int64_t kPeers = 32, kStarts = 32;

/// The number of objects that Engine::find_nearest finds in each kColumnGroup, so that there are `wanted` in all; and
/// of all.
struct Quota {
    int of_group, all;
};
Quota quota_for(std::int64_t objects, std::int64_t wanted);

/// The arrays that lie on the device already.
struct InsertInPlace {
    bool vectors[2], graph, result;
};

/// Sizes in bytes; `sample` is the form of a batch and its pivots. Vectors and graph are a block of their own, which
/// stays for what follows the searches. Where both sets of vectors are copied they adjoin.
struct AppendPlan {
    VectorForm sample;
    std::int64_t batch = 0;  ///< objects
    int length = 0;          ///< what a search keeps
    int offers_each = 0;     ///< objects that it offers its object to, at most

    Part vectors[2], graph_ids, graph_distances;
    std::size_t kept = 0;  ///< bytes of the first block, the parts above; those below are of the second one

    Part given, back, reach, counts, offsets, met, offer_numbers, offers;
    Part objects, gathered, rows, bias, mean, starts, peers, small;
    std::size_t work = 0;   ///< bytes of the second block
    std::size_t total = 0;  ///< at any time

    std::size_t work_bytes() const { return total - kept; }
};

/// Smaller batches where memory is short.
/// \param afterwards  bytes that are taken in place of the second block, after the searches. \throws OutOfDeviceMemory
/// where even the least does not fit
AppendPlan make_append_plan(const detail::Input& input, const InsertInPlace& in_place, const BuildParams& params,
                            std::size_t afterwards, std::size_t free);

}  // namespace gnnd::cuda
