// SPDX-License-Identifier: MIT
#pragma once
/// \file plan.h
/// The device memory of a build: how much it takes and where everything lies in it, before anything is allocated.

#include <cstddef>
#include <cstdint>

#include "gnnd/cuda/space/packed_type.h"
#include "gnnd/detail/input.h"
#include "gnnd/params.h"
#include "gnnd/stats.h"
#include "gnnd/vectors.h"

namespace gnnd::cuda {

inline constexpr int kSegmentLength = 32;  ///< entries that a spinlock covers, the paper's: what a warp holds

inline constexpr int kSmallBytes = 32 << 10;  ///< counters and what the host reads
inline constexpr int kMostToFill = 128;       ///< candidates that fill_lists() sorts, a multiple of the warp

/// One array of the work memory.
struct Part {
    std::size_t offset = 0, bytes = 0;
};

/// The form in which kernels see the vectors.
struct VectorForm {
    PackedType packed = PackedType::f16;
    bool vectors_in_place = false;  ///< the kernels read the caller's (or the copied) vectors as they are
    bool exact_distances = false;   ///< list distances are exact, nothing is computed again at the end
    bool codes = false;             ///< rows are int8 codes of floats, see codes.h
    int components = 0;             ///< of codes: so many of a projection, see projection.h; 0: those of the vectors
    int row_bytes = 0;
    int shift = 0;  ///< of integer keys, see device/tile.cuh
};

/// The form of vectors of u8 or i8, or of floats that are such integers (space.h).
VectorForm integer_form(PackedType packed, std::int64_t d);

/// True where all pairs of floats may be compared as codes of all components: those of rows that are one tile as
/// float16 take as many products.
bool may_sweep_codes(PackedType packed, Metric metric, std::int64_t d);

/// The form of floats as codes.
VectorForm code_form(std::int64_t d);
/// The form of codes of a projection.
VectorForm projected_form();

/// The arrays that lie on the device and are worked on where they are.
struct InPlace {
    bool vectors = false, graphs[2] = {false, false}, result = false;
};

/// All sizes in bytes. The parts of one work block; some that are needed before or after the samples share their place.
struct BuildPlan : VectorForm {
    int samples = 0, length = 0, capacity = 0;
    int tree_capacity = 0;  ///< of candidates while trees grow, where nothing else needs the place of the samples yet
    int segments = 1;       ///< of each list while it is updated
    /// The cross-matches of an iteration are split into so many passes, after each of which candidates are applied: one
    /// where buffers have all the places that are wanted, more where memory is short. First iterations take a multiple.
    int passes = 0;

    Part vectors, rows;               ///< copy of host vectors; packed rows
    Part graph_ids, graph_distances;  ///< result, where it goes to the host
    Part list_ids, list_distances;    ///< where lists are longer than k
    Part visit, bias, bounds, own, reverse, counts, filter, sample_ids, candidates, small;
    Part locks;    ///< where lists have them
    Part offsets;  ///< of reverse samples, where their order counts; they themselves are in `candidates`
    Part keys[2], order[2], sort;  ///< for growing trees
    Part given[2];                 ///< before: the graphs to start from, or the columns of them that stay in the lists
    Part set_aside[2];             ///< at the end: the other columns
    Part projection;               ///< of rows that may be projected
    Part code_errors;              ///< where all pairs may be compared as codes
    Part packing;                  ///< means (2 d floats) and what codes are scaled by: floats are packed at any time
    Part all_pairs;                ///< after the end, to compare them; empty: there is no room, or nobody wants it
    std::size_t total = 0;
    std::size_t beside = 0;  ///< taken in other blocks

    std::size_t vector_bytes() const { return vectors.bytes + rows.bytes; }
    std::size_t graph_bytes() const { return graph_ids.bytes + graph_distances.bytes; }
    std::size_t work_bytes() const { return total + beside - vector_bytes() - graph_bytes(); }
};

/// If memory is short candidates get fewer places and iterations are split into more passes; but the graph of a
/// deterministic build must depend on params.device_memory only.
/// \param sort_bytes  what sorting n keys takes
/// \param beside      bytes that are taken beside the block at the same time
/// \param all_pairs   bytes that comparing all pairs takes once the lists are finished. Where it need not come to that
///                    they are left out if they do not fit
/// \param free        bytes that can be taken, 0: any number. \throws OutOfDeviceMemory where even the least does not
/// fit
BuildPlan make_build_plan(const detail::Input& input, const InPlace& in_place, const BuildParams& params,
                          const Choices& choices, std::size_t sort_bytes, std::size_t beside, std::size_t all_pairs,
                          std::size_t free);

/// The same for search_links(), or for prune_rows() of some objects, which needs no counts, offsets and edges. Copies
/// of what lies on the host are parts of the block too.
struct LinkPlan : VectorForm {
    Part vectors, rows, graph, links, objects;
    Part bias, sizes, counts, offsets, info;
    Part edges;  ///< before them, the means of the components
    std::size_t total = 0;
};

/// \param k     entries of a row of the graph
/// \param some  so many objects' rows are pruned, and their links lie on the host; 0: links of all are made
/// \throws OutOfDeviceMemory where it does not fit into `free`, see make_build_plan()
LinkPlan make_link_plan(const VectorView& vectors, bool vectors_on_device, std::int64_t k, bool graph_on_device,
                        Metric metric, int degree, bool links_on_device, std::int64_t some, std::size_t free);

}  // namespace gnnd::cuda
