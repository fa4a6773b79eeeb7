// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file compat.h
/// The differences between FAISS 1.7.3 and 1.15; the only place that tests for a version.

#include <faiss/Index.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/HNSW.h>
#include <faiss/utils/extra_distances.h>

#include <cstddef>

/// One number to compare: 10000 major + 100 minor + patch.
#define GNND_FAISS_VERSION (FAISS_VERSION_MAJOR * 10000 + FAISS_VERSION_MINOR * 100 + FAISS_VERSION_PATCH)

#if GNND_FAISS_VERSION >= 10900
#define GNND_FAISS_HAS_CAGRA  ///< faiss::IndexHNSWCagra
#endif

static_assert(GNND_FAISS_VERSION >= 10703, "faiss_ext needs FAISS 1.7.3 or later");

namespace faiss_ext {

/// faiss::idx_t; 1.7.3 has it inside of faiss::Index only.
using idx_t = decltype(faiss::Index::ntotal);

/// faiss::knn_extra_metrics: the k nearest of ny vectors y for each of nx vectors x under a metric other than L2 and
/// inner product, nearest first; distances and ids are nx x k. 1.9 replaced the heap in its signature.
inline void knn_extra_metrics(const float* x, const float* y, std::size_t d, std::size_t nx, std::size_t ny,
                              faiss::MetricType metric, std::size_t k, float* distances, idx_t* ids) {
#if GNND_FAISS_VERSION >= 10900
    faiss::knn_extra_metrics(x, y, d, nx, ny, metric, 0.0f, k, distances, ids);
#else
    faiss::float_maxheap_array_t heaps = {nx, k, ids, distances};
    faiss::knn_extra_metrics(x, y, d, nx, ny, metric, 0.0f, &heaps);
#endif
}

/// The number of objects of an upper level that a search goes on from; since 1.9 always 1.
template <class Hnsw = faiss::HNSW>
int upper_beam_of(const Hnsw& hnsw) {
    if constexpr (requires { hnsw.upper_beam; })
        return hnsw.upper_beam;
    else
        return 1;
}

}  // namespace faiss_ext
