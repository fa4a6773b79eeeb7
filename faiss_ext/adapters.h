#pragma once
/// \file adapters.h
/// From a k-NN graph to FAISS's graph indexes. The indexes own float32 copies of the vectors and are ordinary FAISS
/// indexes from then on: search, write_index, read_index.
///
/// All of them throw faiss::FaissException when graph and vectors do not fit (n, metric), when FAISS has no such index
/// for the metric, or when the graph is too small or has too many -1 entries for the index.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>

#include <memory>

#include "faiss_ext/vector_source.h"

namespace faiss_ext {

struct NsgParams {
    int R = 32;         ///< out-degree
    int search_L = 64;  ///< beam width set on the index for searching
    bool verbose = false;
};

/// An NSG built from the graph (faiss::IndexNSG::build). Metrics L2 and inner product (as FAISS allows).
std::unique_ptr<faiss::IndexNSGFlat> to_nsg(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                            const NsgParams& params = {});

struct HnswParams {
    int M = 16;         ///< level 0 holds 2M links per object
    int efSearch = 64;  ///< beam width set on the index for searching
    bool verbose = false;
};

/// A single-level HNSW whose level 0 is the graph, with reverse links added where room is left.
std::unique_ptr<faiss::IndexHNSWFlat> to_hnsw(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                              const HnswParams& params = {});

struct NNDescentIndexParams {
    int search_L = 64;  ///< beam width set on the index for searching
    bool verbose = false;
};

/// An IndexNNDescent whose final graph is the graph.
std::unique_ptr<faiss::IndexNNDescentFlat> to_nndescent(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                                        const NNDescentIndexParams& params = {});

}  // namespace faiss_ext
