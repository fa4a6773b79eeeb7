// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file builder.h
/// The entry points: vectors in, k-NN graph out.

#include <cstdint>
#include <functional>
#include <string>

#include "gnnd/graph.h"
#include "gnnd/params.h"
#include "gnnd/resources.h"
#include "gnnd/stats.h"
#include "gnnd/vectors.h"

namespace gnnd {

/// Hooks into a running build; called from the thread that called build(), never concurrently.
struct Callbacks {
    std::function<void(const IterationStats&)> progress;  ///< after the initialisation and after every iteration
    std::function<bool()> interrupt;  ///< asked many times a second; true ends the build with gnnd::Interrupted
    std::function<void(const std::string&)> verbose;  ///< progress as a line of text without its end, to be printed
};

/// The graph that a build made, and its report.
struct BuildResult {
    KnnGraph graph;    ///< n x k, by the invariants of graph.h
    BuildStats stats;  ///< how it came about
};

/// Builds the approximate k-NN graph of the vectors with GNND (the paper's Algorithm 1). Sets so small that all pairs
/// are cheaper than sampling are compared exhaustively, which gives the exact graph. The graph's recall is measured,
/// and the build goes on until it is as asked for: see BuildParams::recall, BuildStats::recall and StopReason.
/// \param vectors    n x d, 2 <= n <= kMaxObjects, of any type that vectors may have (GNND_VECTOR_DTYPES). Finite,
///                   with squared norms below 8.5e37, a quarter of the largest float32, so that all distances are
///                   finite. Small ones are taken as they are: squares of components below 1e-19 lose digits in
///                   float32, those below 1e-23 are 0
/// \param params     see BuildParams; k may exceed n - 1, the rows are padded then
/// \param callbacks  hooks into the build
/// \param resources  where work memory comes from; the heap when null
/// \return n x params.k, by the invariants of graph.h
/// \throws InvalidArgument for parameters or vectors outside of what is allowed (the row is named), Unavailable for a
///         device that is not there, Interrupted when the callback asked for it, OutOfDeviceMemory and DeviceError
BuildResult build(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks = {},
                  Resources* resources = nullptr);

/// The same into arrays of the caller, n x k each. On a GPU vectors and arrays may also lie in the memory of the device
/// that params.device names; then nothing passes through the host (but for sets of some thousand objects or less, which
/// it compares exhaustively), and the work is in order with Resources::stream().
/// \throws as build(); the arrays' content is undefined then
BuildStats build_into(const VectorView& vectors, const BuildParams& params, std::int32_t* ids, float* distances,
                      const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// Compares all pairs: the exact graph, whatever the vectors are like. A set that does not fit into the memory of a GPU
/// is compared in parts, two of which are there at a time; then the host holds the graph twice.
/// \param params  of these k, metric, threads, device and device_memory matter
/// \return, \throws as build()
BuildResult build_exact(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks = {},
                        Resources* resources = nullptr);

/// The same into arrays of the caller, as build_into().
BuildStats build_exact_into(const VectorView& vectors, const BuildParams& params, std::int32_t* ids, float* distances,
                            const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// The choices of a build, its time and its memory, from and to host memory, in bytes: the host's on the CPU, the
/// device's on a GPU.
struct MemoryPlan {
    Device device;            ///< where it would run
    Choices choices;          ///< decided as for the build
    std::string why;          ///< whether all pairs are compared, and what decides it, for people
    Prediction predicted;     ///< how long it would take; nothing for metrics without products (l1, linf, chi2)
    std::size_t vectors = 0;  ///< copies of the vectors in the forms that the kernels need (at most); none on the CPU
    std::size_t graph = 0;    ///< ids and distances
    /// Everything else, at its peak, as long as no lists grow and no more objects are measured for the recall's sake.
    std::size_t work = 0;
    std::size_t free = 0;  ///< there now
    /// All of it.
    std::size_t total() const { return vectors + graph + work; }
};

/// The memory that build() would take; nothing is allocated, vectors.data may be null.
/// \throws as build() for parameters, Unavailable without that GPU, OutOfDeviceMemory where it would not fit there
MemoryPlan plan_memory(const VectorView& vectors, const BuildParams& params);

/// Runs GNND's iterations on a given graph instead of an initial one; init and trees of the parameters are ignored.
/// \param graph  a graph over the same n vectors, any k, metric as in params; -1 entries and any order are fine. Its
///               distances are not trusted but computed again.
/// \throws as build(), and InvalidArgument where graph and vectors do not fit
BuildResult refine(const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params,
                   const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// Exact neighbours of some of the objects by comparing each with all vectors, under any metric. Those that a GPU's
/// memory does not hold are there in parts, one after the other.
/// \param vectors    n x d, any type of build()
/// \param queries    `count` ids in [0, n), in any order, on the host; row i of the result belongs to queries[i]
/// \param params     of these k, metric, threads, device and device_memory matter
/// \param callbacks  of them `interrupt` is asked
/// \param resources  where work memory comes from; the heap when null
/// \return a graph of count x k that follows the invariants of graph.h, ids over [0, n)
/// \throws as build()
KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& params, const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// The same on the CPU, of vectors in host memory.
/// \param k        columns of the result, 1 to kMaxK
/// \param threads  0: as many as OpenMP gives
KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, int k,
                         Metric metric, int threads = 0, const Callbacks& callbacks = {});

/// The metric's value of pairs (a[i], b[i]) of objects, as it would stand in a graph; b[i] = -1 gives worst_value().
/// \param vectors  n x d in host memory, taken as good: NaN gives NaN, but linf passes over it
/// \param a, b     `count` ids each, of [0, n), b also -1
/// \param out      `count` values; for l2 squared distances, as everywhere
/// \throws InvalidArgument that names the first id outside
void pair_distances(const VectorView& vectors, Metric metric, const std::int32_t* a, const std::int32_t* b,
                    std::int64_t count, float* out);

}  // namespace gnnd
