// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file search_links.h
/// From a k-NN graph to links that a greedy search walks along: neighbours, but in as many directions as possible.

#include <cstdint>

#include "gnnd/builder.h"

namespace gnnd {

inline constexpr int kMaxDegree = 4096;    ///< links of an object on the CPU
inline constexpr int kMaxGpuDegree = 128;  ///< and on a GPU
inline constexpr int kMaxPruned = 128;     ///< entries of a row that step 1 looks at, the nearest

/// Parameters of search_links().
struct LinkParams {
    int degree = 32;   ///< links of an object, 1 to kMaxDegree (on a GPU: to kMaxGpuDegree)
    Device device;     ///< where to run; `automatic` takes the CPU for degrees that a GPU does not do
    int threads = 0;   ///< CPU threads; 0: as many as OpenMP gives
    bool fill = true;  ///< whether step 3 is done; where it is not rows have the links of steps 1 and 2
};

/// Chooses the links of every object in three steps.
///  1. Of the nearest kMaxPruned entries of its row, nearest first, those are linked that lie nearer to the object than
///     to any linked before them (equally near counts as farther): the rule of relative neighbourhoods, by which HNSW
///     and NSG prune, too.
///  2. Links get their opposites while there is room: first those of the objects that an object is the first link of,
///     then the second and so on (CAGRA's order), each by number.
///  3. The rest of the row fills what room is left, nearest first.
/// The result is the same on any number of threads, and run after run on a GPU. CPU and GPU agree to the bit where
/// distances are exact (u8 and i8 under l2 and ip while they fit float32); a GPU compares others as builds do, as
/// float16.
///
/// On a GPU vectors, graph.ids and links may each lie on the host or on the device that params.device names; work is in
/// order with Resources::stream().
/// \param vectors    n x d, the ones that the graph was built over; values that build() refuses are not looked for
/// \param graph      n x k that follows the invariants of graph.h. The CPU takes distances from it, a GPU computes
///                   them. An object in its own row, one that is there twice, and in a graph on a device ids outside of
///                   [0, n), are passed over.
/// \param params     degree, and where to run
/// \param links      n x degree ids, -1 at the end of rows with fewer
/// \param callbacks  only `interrupt` is asked
/// \param resources  where work memory comes from; the heap when null
/// \throws InvalidArgument for parameters, vectors or a graph outside of what is allowed, or in a memory that the
///         device cannot reach, Unavailable for a device that is not there, Interrupted when the callback asked for it,
///         OutOfDeviceMemory and DeviceError; the links are undefined then
void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params, std::int32_t* links,
                  const Callbacks& callbacks = {}, Resources* resources = nullptr);

/// Step 1 of search_links() alone, for some of the objects: for who knows which rows of a graph have changed. Runs
/// where the vectors lie, on the CPU or on the GPU in whose memory they are; params.device is not looked at.
/// \param vectors, graph, params, callbacks, resources  as for search_links(); the graph's ids may lie where the
///                 vectors do or on the host
/// \param objects  `count` ids of [0, n), in any order, in host memory
/// \param links    count x degree ids in host memory, row i of objects[i], -1 at the end of rows with fewer
/// \throws as search_links(); the links are undefined then
void prune_rows(const VectorView& vectors, const KnnGraphView& graph, const std::int32_t* objects, std::int64_t count,
                const LinkParams& params, std::int32_t* links, const Callbacks& callbacks = {},
                Resources* resources = nullptr);

}  // namespace gnnd
