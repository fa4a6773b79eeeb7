// SPDX-License-Identifier: MIT
#pragma once
/// \file gpu.h
/// The functions that need FAISS's GPU headers, behind plain types: built as gpu_*.cpp with a FAISS that has them, else
/// as without_gpu.cpp.

#include <faiss/Clustering.h>
#include <faiss/Index.h>
#include <faiss/IndexFlat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "faiss_ext/gpu.h"
#include "faiss_ext/vector_source.h"

namespace faiss_ext::detail {

/// \throws faiss::FaissException unless there are resources and the device exists; `who` asks. FAISS itself would
/// abort.
void check_gpu(const Gpu& gpu, const char* who);

/// If the index lies on a GPU: its vectors where they are (GpuIndexFlat; what was added is there), or a copy of it on
/// the CPU. False for every other index.
bool read_gpu_index(const faiss::Index& index, gnnd::VectorView& view, std::unique_ptr<faiss::Index>& copy);

/// Exact search by FAISS among all vectors of a source. Vectors that are float32 on the device already are
/// searched in place; others are copied there, in parts where they do not fit.
class GpuFlatSearch {
  public:
    /// \param neighbours     per query, at most 2048
    /// \param device_memory  most bytes to copy at a time; 0: most of what is free
    GpuFlatSearch(const Gpu& gpu, const VectorSource& source, std::int64_t neighbours, std::int64_t device_memory);
    ~GpuFlatSearch();
    /// \param asked    holds the queries: the source itself, or another of its dimension and metric
    /// \param objects  which of them
    /// The results are count x neighbours, best first.
    void search(const VectorSource& asked, const std::int32_t* objects, std::int64_t count, float* distances,
                idx_t* ids);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

struct IvfpqShape {
    std::int64_t d;
    faiss::MetricType metric;
    idx_t nlist;
    int code_bytes;           ///< divides d
    int points_per_centroid;  ///< that train the coarse centroids, at most
    std::uint64_t seed;
    std::int64_t vectors;  ///< that will be added: on a GPU lists have room for them from the start
    bool operator==(const IvfpqShape&) const = default;
};

/// An IVFPQ index, and what it refers to.
struct Ivfpq {
    std::unique_ptr<faiss::IndexFlat> coarse;
    std::unique_ptr<faiss::Index> index;
    std::function<void(int)> set_nprobe;
};

void configure(faiss::ClusteringParameters& clustering, std::uint64_t seed);
/// \tparam Ivfpq  FAISS's for the CPU or for GPUs
template <class Ivfpq>
void configure(Ivfpq& index, const IvfpqShape& shape) {
    configure(index.cp, shape.seed);
    index.cp.max_points_per_centroid = shape.points_per_centroid;
    configure(index.pq.cp, shape.seed);
}

template <class Index>
Ivfpq with_nprobe(std::unique_ptr<faiss::IndexFlat> coarse, std::unique_ptr<Index> index) {
    Index& made = *index;
    return {std::move(coarse), std::move(index), [&made](int nprobe) { made.nprobe = nprobe; }};
}

/// True where FAISS has codes of so many bytes on GPUs.
bool gpu_has_code_bytes(std::int64_t bytes);
/// An empty, untrained GpuIndexIVFPQ.
Ivfpq make_gpu_ivfpq(const Gpu& gpu, const IvfpqShape& shape);

}  // namespace faiss_ext::detail
