// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file optimize.h
/// From a k-NN graph to a graph for searching. A greedy search over the neighbours themselves misses much unless its
/// beam is wide: neighbours of one object lie close together, and nothing leads to an object that is nobody's
/// neighbour.

#include <cstdint>
#include <vector>

#include "faiss_ext/gpu.h"
#include "faiss_ext/vector_source.h"

namespace faiss_ext {

/// At most `degree` links per object, all objects reachable from the entry.
struct SearchGraph {
    int degree = 0;                   ///< columns of links
    std::int32_t entry = 0;           ///< the object that searches start from
    std::vector<std::int32_t> links;  ///< n x degree, -1 at the end of rows with fewer

    /// The links of object i, `degree` ids.
    const std::int32_t* of(std::int64_t i) const { return links.data() + i * degree; }
};

/// Prunes by the rule of relative neighbourhoods (HNSW's and NSG's), adds links in the other direction, and fills up:
/// gnnd/search_links.h has the steps. Objects that then cannot be reached from the entry, the one nearest to the mean,
/// are searched for as a query would be, and linked from the nearest object found; that is the CPU's part. The result
/// is the same on any number of threads.
/// \param source  n vectors
/// \param graph   n x k, over them
/// \param degree  1 to 4096; a GPU takes up to 128, more are left to the CPU
/// \param gpu     where links are chosen
/// \throws faiss::FaissException as the adapters do (adapters.h)
SearchGraph optimize_graph(const VectorSource& source, const gnnd::KnnGraphView& graph, int degree,
                           const Gpu& gpu = {});

}  // namespace faiss_ext
