// SPDX-License-Identifier: MIT
#pragma once
/// \file engine.h
/// The steps whose kernels depend on the type that vectors are packed to and on the metric: a table of functions,
/// chosen once per build. They start a kernel on the stream and return.

#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/space/packed_type.h"
#include "gnnd/metric.h"
#include "gnnd/params.h"

namespace gnnd::cuda {

inline constexpr int kWindow = 256;      ///< objects of a window, a leaf of a projection tree
inline constexpr int kWideWindow = 512;  ///< and where only half of the pairs count
inline constexpr int kMaxPivots = 256;   ///< ways that a tree's node divides

/// A level of a projection tree. A node is `node_size` consecutive objects of the order.
struct AssignToPivotsArgs {
    const u32* order;        ///< n: objects
    std::int64_t node_size;  ///< objects, a multiple of kWindow unless there is one node
    int pivots;              ///< of a node, at most kMaxPivots, random members of it
    u32 seed;                ///< of their choice
    u32* keys;               ///< n, written: node * pivots + the number of the pivot that is nearest to order[i]
};

/// The objects of a window become each other's candidates.
struct JoinWindowArgs {
    const u32* order;       ///< n: objects, window after window
    Candidates candidates;  ///< written: of each object `take` places from `at` on, and how many are taken
    int at, take;           ///< take: at most 16
};

/// Neighbours as candidates: those of a graph, or those that one of the inits picks.
struct InitNeighborsArgs {
    Candidates candidates;      ///< written: of each object the places [0, count)
    const std::int32_t* graph;  ///< n x width ids, -1 for none; null: picked ones instead
    int width, first, count;    ///< the columns [first, first + count) of the graph
    Init init;                  ///< of picked ones
    u32 seed;                   ///< of the hashes that they are picked by
    /// The lists must not depend on the order in which blocks run. Then no distance may be more than what a cross-match
    /// finds for the same pair (update.cuh), and what two sums of floats may differ by is taken off. Otherwise
    /// distances are those of a cross-match: lowered ones would outrank nearer candidates.
    bool ordered;
};

/// The update, and the arrays that it needs beside the lists.
struct Variant {
    Update update;          ///< see update.cuh
    Filter filter;          ///< of auto
    Candidates candidates;  ///< of auto, and for all while the lists are initialised
    u32* locks;             ///< n x segments: of the others; auto with locks is CompleteUpdate
};

/// Steps 3 and 4.
struct CrossMatchArgs {
    Samples samples;
    Lists lists;  ///< with biases behind the bounds, see pair_bounds()
    Variant variant;
    /// n: objects in the order in which blocks take them, null: by number. Neighbours in space should be near each
    /// other there: their rows and lists meet in the cache.
    const u32* visit;
    std::int64_t first;  ///< of that order the first place to take, and
    int stride;          ///< every so many-th from there on
    bool many_samples;   ///< most objects have about as many NEW and as many OLD ones as there is room for
    bool only_new;       ///< no object has OLD ones yet; should one have, they are left out
    const StopFlag* stop;
    Counters* counters;  ///< kSpread
};

/// Step 1 of search_links() for the rows [first, first + count) of the links.
struct PruneArgs {
    const std::int32_t* graph;  ///< n x k ids
    std::int64_t k;
    Links links;  ///< written: rows, sizes, and, unless counts are null, whom they chose counted
    std::int64_t first, count;
    const std::int32_t* objects = nullptr;  ///< whose links each row has; null: row i has those of object i
};

/// Objects [first_row, first_row + rows) against the columns [first_column, first_column + columns).
struct FindNearestArgs {
    u32 first_row, rows, first_column, columns;
    const u32* objects;  ///< n: the objects that the points are
    int take;            ///< from each group of kColumnGroup columns
    u32* nearest;        ///< rows x groups x take, written: objects, nearest first in each group; kNoId where fewer
};

struct Engine {
    /// Consecutive objects of an order that are a window for join_window.
    std::int64_t (*window_size)(const Points&);
    /// Null where there is no tensor product: assigning_engine_for() has it.
    void (*assign_to_pivots)(const Points&, const AssignToPivotsArgs&, cudaStream_t);
    void (*join_window)(const Points&, const JoinWindowArgs&, cudaStream_t);
    void (*init_neighbors)(const Points&, const InitNeighborsArgs&, cudaStream_t);
    /// Every update; the paper's variants only where they are compiled in (has_variants(), backend.h).
    void (*cross_match)(const Points&, const CrossMatchArgs&, cudaStream_t);
    void (*prune)(const Points&, const PruneArgs&, cudaStream_t);
    void (*find_nearest)(const Points&, const FindNearestArgs&, cudaStream_t);
};

/// The engine for the packed type and the metric.
const Engine& engine_for(PackedType packed, Metric metric);
/// The engine that assigns to pivots: l2 on tensor cores, whatever the metric.
const Engine& assigning_engine_for(PackedType packed);

}  // namespace gnnd::cuda
