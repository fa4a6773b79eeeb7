#pragma once
/// \file plan.h
/// The device memory of append() by searching.

#include "gnnd/cuda/memory/plan.h"

namespace gnnd::cuda {

/// Pivots that the objects of a batch are compared with. Chosen by measurement (benchs/NOTEBOOK.md).
inline constexpr std::int64_t kInsertPivots = 8192;
/// Nearest ones of a batch that an object is linked to, and nearest pivots that it starts from, at least.
inline constexpr std::int64_t kPeers = 32, kStarts = 32;

/// How many of each kGroup objects are found, see nearest.cuh, so that there are `wanted` in all; and how many that is.
struct Share {
    int of_group, all;
};
Share share_of(std::int64_t objects, std::int64_t wanted);

/// What lies on the device already.
struct InsertInPlace {
    bool vectors[2], graph, result;
};

/// Sizes in bytes; `sample` is the form of a batch and its pivots.
struct InsertPlan {
    VectorForm sample;
    std::int64_t batch = 0;  ///< objects
    int length = 0;          ///< what a search keeps

    Part vectors[2], given;
    Part graph_ids, graph_distances;
    Part back, reach, counts, ends, found, slots, offers;
    Part objects, gathered, rows, bias, mean, starts, peers, small;
    std::size_t total = 0;

    std::size_t work_bytes() const {
        return total - vectors[0].bytes - vectors[1].bytes - graph_ids.bytes - graph_distances.bytes;
    }
};

/// Smaller batches where memory is short. \throws OutOfDeviceMemory where even the least does not fit
InsertPlan make_insert_plan(const detail::Input& input, const InsertInPlace& in_place, const BuildParams& params,
                            std::size_t free);

}  // namespace gnnd::cuda
