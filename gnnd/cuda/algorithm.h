// SPDX-License-Identifier: MIT
#pragma once
/// \file algorithm.h
/// GNND as the paper orders it, on the device. These functions start kernels on a stream and return; steps that depend
/// on what the vectors are packed to and on the metric are functions of the Engine (engine/engine.h).
/// init/initialize.cu puts step 1 together, iterations.cu calls steps 2 to 4 in its loop, recall/reach_recall.cu step
/// 5, and build.cu is what comes before and after.
///
///   1. init          load_graph (merges), assign_to_pivots, join_window and fill_lists (trees), init_neighbors
///                    (random, refine)
///   2. sample        NEW and OLD samples of every list, and the reverse ones
///   3. cross_match   the samples of every object are compared with each other
///   4. update        what is nearest goes to the lists (update.cuh), by way of apply_candidates
///      check_convergence
///   5. finish        lists become a graph with exact distances

#include "gnnd/cuda/engine/engine.h"
#include "gnnd/cuda/space/space.h"
#include "gnnd/params.h"

namespace gnnd::cuda {

/// The vectors as kernels see them, once prepare_space() was given them.
/// \param rows  n x row_bytes, the packed ones; not looked at where they are used in place
Points points_of(const RawVectors&, Metric, const VectorForm&, const std::uint8_t* rows, const u32* bias,
                 detail::Pairs pairs = {});

/// Columns of a finished graph on the device, of one of the sets of a merge.
struct Columns {
    const std::int32_t* ids;  ///< n x stride; ids are numbers in the set
    const float* distances;   ///< n x stride, the metric's values
    std::int64_t n, stride;
    std::int64_t begin, end;  ///< these columns of the stride
    u32 first;                ///< the set's first object

    __host__ __device__ int count() const { return int(end - begin); }
};

/// Empty lists and no candidates.
void clear(const Lists&, const Candidates&, std::int64_t n, cudaStream_t);
/// Puts each object's bias (null: 0) behind its bound, where cross-matches read it; bound_stride is 2.
void pair_bounds(const Lists&, const u32* bias, std::int64_t n, cudaStream_t);
/// Bytes that sort() needs; and sorting keys along with the order by the low `bits` bits of the keys. The arrays swap
/// places: afterwards keys[0] and order[0] hold the result.
std::size_t sort_bytes(std::int64_t n);
void number(u32* order, std::int64_t n, cudaStream_t);
void sort(u32* (&keys)[2], u32* (&order)[2], std::int64_t n, int bits, void* work, std::size_t bytes, cudaStream_t);
/// The same of nodes whose keys follow each other's, as AssignToPivotsArgs has them, each apart and where it lies:
/// where nodes are so small that a block sorts one.
bool can_sort_nodes(std::int64_t node, int pivots);
void sort_nodes(const u32* keys, u32* order, std::int64_t n, std::int64_t node, int pivots, cudaStream_t);
/// The second of three steps that put edges into the arrays of their owners: count, allocate offsets, scatter.
/// \param counts   owners: how many edges each has
/// \param offsets  owners and one, written: where each owner's edges begin, in an order that chance decides, and behind
///                 them how many all have. Who scatters moves an owner's offset on for every edge, with atomicAdd, so
///                 that it ends where the owner's edges end
/// \param stop     null, or the flag that says to do nothing
void allocate_offsets(const u32* counts, u64* offsets, std::int64_t owners, const StopFlag* stop, cudaStream_t stream);
/// Step 2, in the order `visit` (null: by number). The salt chooses among reverse samples where samples.offsets is
/// given.
void sample(const Lists&, const Samples&, const Filter&, u32 salt, detail::Pairs, const u32* visit, std::int64_t n,
            const StopFlag*, cudaStream_t);
/// Takes the NEW bits off, and makes -1 of what is not filled: lists as a graph's ids.
void make_ids_plain(const Lists&, std::int64_t n, cudaStream_t);
/// Before step 1 of a merge: the columns into empty lists, OLD.
void load_graph(const Columns&, const Lists&, const SpaceInfo*, cudaStream_t);
/// Step 1 after some trees: lists that were empty take the nearest candidates, of at most kMostToFill. All places and
/// bounds are written, the candidates' counts are 0 afterwards.
void fill_lists(const Lists&, const Candidates&, std::int64_t n, Counters*, cudaStream_t);
/// Divides lists of one segment into the given number. What finds no room in its segment is dropped.
void split(Lists&, int segments, std::int64_t n, cudaStream_t);
/// Step 4's second half: candidates into the lists. Their counts are 0 afterwards.
void apply_candidates(const Lists&, const Candidates&, std::int64_t n, const StopFlag*, Counters*, cudaStream_t);
/// Sums up an iteration, and raises the stop flag where fewer entries than the threshold are NEW. Counters start from 0
/// again.
void check_convergence(const Lists&, int k, std::int64_t n, int iteration, double threshold, const SpaceInfo*,
                       StopFlag*, Counters*, Record*, cudaStream_t);
/// Step 5: the first k of every list as a graph, exact distances, short lists filled up with random objects.
struct FinishArgs {
    RawVectors vectors;
    bool exact_distances;  ///< those of the lists are, nothing is computed again
    Lists lists;
    int width;             ///< so many entries of each list are looked at
    Columns set_aside[2];  ///< of a merge, the columns of each set that were set aside; they take part
    /// n: the order in which objects are taken, so that rows of neighbours meet in the cache; null: by number
    const u32* visit;
    int k;
    u32 seed;  ///< of random objects
    const SpaceInfo* info;
    std::int32_t* ids;  ///< n x k, written
    float* distances;   ///< n x k, written
};
void finish(const FinishArgs&, Metric, cudaStream_t);

}  // namespace gnnd::cuda
