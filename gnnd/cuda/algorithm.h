#pragma once
/// \file algorithm.h
/// The steps as the host sees them: plain functions that start kernels on a stream. Those that depend on the kind of
/// cells and on the metric come as a table (Engine), chosen once per build.

#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/space.h"
#include "gnnd/params.h"

namespace gnnd::cuda {

/// Which update, and the arrays that it needs beside the lists.
struct Variant {
    Update update;          ///< see update.cuh
    Filter filter;          ///< of auto
    Candidates candidates;  ///< of auto, and for all while the lists are initialised
    u32* locks;             ///< of the others; auto with locks is CompleteUpdate
};

/// Step 1's pieces and steps 3 and 4 for one kind of cells and one metric.
struct Engine {
    /// keys[i] = node * pivots + nearest pivot of order[i]; see init.cuh.
    void (*divide)(const Points&, const u32* order, std::int64_t window, int pivots, u32 seed, u32* keys, cudaStream_t);
    /// How many objects, consecutive in the order, are a window for meet(): those of a tree's leaf.
    std::int64_t (*leaf)(const Points&);
    /// The nearest of each object's window as candidates.
    void (*meet)(const Points&, const u32* order, const Candidates&, int at, int take, cudaStream_t);
    /// Given or random neighbours as candidates.
    void (*seed)(const Points&, const Candidates&, const std::int32_t* graph, int width, int first, int count, u32 seed,
                 bool ordered, cudaStream_t);
    /// Every stride-th object from the first on, in the order `visit` (null: by number). Neighbours in space should be
    /// near each other there: their rows and lists meet in the cache.
    void (*cross_match)(const Points&, const Samples&, const Lists&, const Variant&, const u32* visit,
                        std::int64_t first, int stride, const Control*, Counters*, cudaStream_t);
    /// Step 1 of search_links() for the objects [first, first + count): fills their rows of the links, sizes and
    /// counts. graph: n x k ids.
    void (*prune)(const Points&, const std::int32_t* graph, std::int64_t k, const Links&, std::int64_t first,
                  std::int64_t count, cudaStream_t);
};

/// The engine for the cells and the metric; the one place that lists them.
const Engine& engine_for(Cell cell, Metric metric);
/// The engine that divides: l2 on tensor cores, whatever the metric.
const Engine& dividing_engine_for(Cell cell);

const Engine& engine_u8();
const Engine& engine_i8();
const Engine& engine_f16();
const Engine& engine_l1();
const Engine& engine_linf();
const Engine& engine_chi2();

/// What the kernels need to know of vectors that prepare_space() was given. rows: the packed ones, if there are any.
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
/// Bytes that sort() needs, and sorting keys along with the order by the low `bits` bits of the keys. The arrays swap
/// places: afterwards keys[0] and order[0] hold the result.
std::size_t sort_bytes(std::int64_t n);
void number(u32* order, std::int64_t n, cudaStream_t);
void sort(u32* (&keys)[2], u32* (&order)[2], std::int64_t n, int bits, void* work, std::size_t bytes, cudaStream_t);
/// Divides an array among `owners`: ends[i] = where owner i's counts[i] places begin. Who takes which is left to
/// chance. ends: as many, and one for the number of all. control: null, or when to do nothing.
void reserve(const u32* counts, u64* ends, std::int64_t owners, const Control* control, cudaStream_t stream);
/// Step 2, in the order `visit` (null: by number). The salt chooses among reverse samples where samples.ends is given.
void sample(const Lists&, const Samples&, const Filter&, u32 salt, detail::Pairs, const u32* visit, std::int64_t n,
            const Control*, cudaStream_t);
/// Before step 1 of a merge: the columns into empty lists, OLD.
void adopt(const Columns&, const Lists&, const SpaceInfo*, cudaStream_t);
/// Divides lists of one segment into the given number. What finds no room in its segment is dropped.
void split(Lists&, int segments, std::int64_t n, cudaStream_t);
/// Step 4's second half: candidates into the lists.
void merge(const Lists&, const Candidates&, std::int64_t n, const Control*, Counters*, cudaStream_t);
/// Sums up an iteration, and sets control->stopped where fewer than `enough` entries are NEW. Counters start from 0
/// again.
void review(const Lists&, int k, std::int64_t n, int iteration, double enough, const SpaceInfo*, Control*, Counters*,
            Record*, cudaStream_t);
/// Step 5: the first k of every list as a graph, exact distances, short lists filled up. Of a merge, the columns of the
/// first and second set that were set aside take part.
void finish(const RawVectors&, Metric, bool trusted, const Lists&, const Columns (&set_aside)[2], int k, u32 seed,
            const SpaceInfo*, std::int32_t* ids, float* distances, cudaStream_t);

}  // namespace gnnd::cuda
