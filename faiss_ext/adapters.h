// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file adapters.h
/// From a k-NN graph to FAISS's graph indexes. The indexes own float32 copies of the vectors and are ordinary FAISS
/// indexes from then on: search, write_index, read_index. They number the vectors as the source's rows are; see
/// VectorSource::id_of() for the ids of the index that the vectors came from.
///
/// Vectors that lie on a GPU are copied once, into the index. Links are chosen where the vectors lie.
///
/// Metrics: L2, inner product, L1 and Linf. Cosine becomes an index of normalised vectors under inner product, the way
/// FAISS is used for it: normalise the queries too (faiss::fvec_renorm_L2).
///
/// All of them throw faiss::FaissException when graph and vectors do not fit (n, metric), when the graph breaks the
/// invariants of gnnd/graph.h, when FAISS has no such metric (chi2), for fewer than 2 vectors or ones that
/// gnnd::build() refuses, and for parameters outside of what is allowed.
///
/// FAISS itself does not check the k of a search: an IndexNSG must be asked for at most n, an IndexNNDescent for at
/// most n - 1 neighbours.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>

#include <memory>

#include "faiss_ext/gpu.h"
#include "faiss_ext/vector_source.h"

namespace faiss_ext {

/// Parameters of to_nsg().
struct NsgParams {
    int R = 32;            ///< out-degree, at least 1
    int search_L = 64;     ///< beam width set on the index for searching, at least 1; lowered to n
    Gpu gpu = {};          ///< where links are chosen; without resources where the vectors lie
    bool verbose = false;  ///< the index's own: FAISS prints what it does
};

/// An NSG over the graph: its links are chosen by NSG's rule among each object's neighbours, in both directions, and
/// every object is reachable from the entry point (optimize.h). faiss::IndexNSG::build() is not used,
/// because it never returns when the objects that it reaches have R links each and others are left, as happens with
/// equal or equidistant vectors.
std::unique_ptr<faiss::IndexNSGFlat> to_nsg(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                            const NsgParams& params = {});

/// Parameters of to_hnsw().
struct HnswParams {
    int M = 16;         ///< level 0 holds 2M links per object, the others M; at least 2
    int efSearch = 64;  ///< beam width set on the index for searching, at least 1; lowered to n
    /// Without levels above the graph's, which are of graphs over ever smaller samples of the objects: searches come
    /// down them to where they look around.
    bool base_level_only = false;
    Gpu gpu = {};          ///< where links are chosen; without resources where the vectors lie
    bool verbose = false;  ///< the index's own: FAISS prints what it does
};

/// An HNSW over the graph, linked as to_nsg() does.
std::unique_ptr<faiss::IndexHNSWFlat> to_hnsw(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                              const HnswParams& params = {});

/// Parameters of to_nndescent().
struct NNDescentIndexParams {
    int search_L = 64;     ///< beam width set on the index for searching, at least 1; lowered to n - 1
    bool verbose = false;  ///< the index's own: FAISS prints what it does
};

/// Parameters of to_hnsw_cagra() and to_gpu_cagra().
struct HnswCagraParams {
    int degree = 32;       ///< links of every object, even, at least 4 and at most n - 1
    int efSearch = 64;     ///< beam width set on the index for searching, at least 1
    Gpu gpu = {};          ///< where links are chosen; without resources where the vectors lie
    bool verbose = false;  ///< the index's own: FAISS prints what it does
};

#ifdef GNND_FAISS_HAS_CAGRA
/// An IndexHNSWCagra (FAISS 1.9 and later) of its base level only, linked as to_nsg() does, every row full: what
/// GpuIndexCagra::copyFrom() takes in builds of FAISS with cuVS. L2, inner product and cosine.
std::unique_ptr<faiss::IndexHNSWCagra> to_hnsw_cagra(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                                     const HnswCagraParams& params = {});
#endif

/// True where faiss_ext was built with a FAISS that has CAGRA: 1.10 and later, with cuVS.
bool faiss_has_cagra();

/// A faiss::gpu::GpuIndexCagra over the graph, of what to_hnsw_cagra() makes. FAISS lets it go on using the vectors of
/// that one, which lives as long. It numbers the vectors as the source's rows are.
/// \param params  `gpu` has resources, and the index lies on its device; `efSearch` counts for nothing
/// \throws faiss::FaissException where FAISS has no CAGRA, without resources, and as to_hnsw_cagra()
std::shared_ptr<faiss::Index> to_gpu_cagra(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                           const HnswCagraParams& params = {});

/// An IndexNNDescent whose final graph is the graph: its first min(k, n - 1) columns, since FAISS cannot search one
/// with missing neighbours.
std::unique_ptr<faiss::IndexNNDescentFlat> to_nndescent(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                                        const NNDescentIndexParams& params = {});

}  // namespace faiss_ext
