// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file vector_source.h
/// The vectors that a FAISS index holds.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faiss_ext/compat.h"
#include "gnnd/graph.h"
#include "gnnd/vectors.h"

namespace faiss_ext {

/// gnnd's metric for an index's. \throws faiss::FaissException where there is no counterpart
gnnd::Metric to_gnnd_metric(faiss::MetricType metric);
/// FAISS's metric for gnnd's; cosine has none. \throws faiss::FaissException where there is no counterpart
faiss::MetricType to_faiss_metric(gnnd::Metric metric);

/// The metric under which FAISS finds what `metric` orders: its counterpart, or inner product for cosine, of vectors
/// that were normalised before; nothing where FAISS has none.
std::optional<faiss::MetricType> searched_metric(gnnd::Metric metric);

/// A view of the vectors of a FAISS index, in the order of their storage, with the ids under which FAISS knows them.
/// Copies share what was decoded.
///
/// IndexFlat and GpuIndexFlat are viewed in place; every other index is decoded once into memory owned here (n x d
/// float32). The index is never changed; it must outlive the view and must not be added to meanwhile.
/// Supported, also nested in one another: IndexFlat, IndexScalarQuantizer, IndexPQ and other IndexFlatCodes, IndexIVF
/// (any ids; the rows are in the order of the ids, so that row i is object i of an index without ids of its own),
/// IndexRefine (the refining index), IndexPreTransform (vectors in the space of the inner index; distances are those of
/// that space), IndexIDMap and IndexIDMap2, IndexNSG, IndexHNSW and IndexNNDescent (their storage), and any other index
/// whose reconstruct() works. Of GPU indexes, where FAISS has them: GpuIndexFlat (float32 or float16, as it is) and
/// those that FAISS can copy to the CPU (GpuIndexIVFFlat, GpuIndexIVFScalarQuantizer, GpuIndexIVFPQ; not with
/// INDICES_IVF, which keeps no ids).
class VectorSource {
  public:
    /// \throws faiss::FaissException for a null or empty index, a metric that gnnd does not have, or an index that
    ///         cannot reconstruct its vectors (its class is named)
    explicit VectorSource(const faiss::Index* index);
    /// Vectors that no index holds, in host memory or in that of a GPU; the memory must outlive the source.
    /// \throws faiss::FaissException when there are none
    VectorSource(const gnnd::VectorView& vectors, gnnd::Metric metric);

    /// The vectors where they lie.
    const gnnd::VectorView& vectors() const { return view_; }
    /// The GPU in whose memory they lie; -1: the host.
    int device() const { return device_; }
    /// The vectors on the host; those of a GPU are copied at the first call. \throws gnnd::DeviceError
    const gnnd::VectorView& on_host() const;
    /// True where on_host() has copied them.
    bool copied_to_host() const;
    /// The index's metric, or the one given.
    gnnd::Metric metric() const { return metric_; }
    /// The index's id of row i; i itself unless the index has ids of its own.
    idx_t id_of(idx_t row) const { return ids_.empty() ? row : ids_[row]; }
    /// Empty unless the index has ids of its own.
    const std::vector<idx_t>& ids() const { return ids_; }

  private:
    void read(const faiss::Index* index);
    void locate();
    void read_rows(const faiss::Index& index);
    void read_inverted_lists(const faiss::Index& index);

    struct HostCopy;

    gnnd::VectorView view_;
    int device_ = -1;
    std::shared_ptr<HostCopy> host_copy_;  // of vectors on a GPU
    gnnd::Metric metric_ = gnnd::Metric::L2;
    std::shared_ptr<std::vector<float>> decoded_;
    std::shared_ptr<const faiss::Index> copy_;  // of an index on a GPU
    std::vector<idx_t> ids_;
};

/// The graph's entries as FAISS ids (n x k, row-major; -1 stays -1), translated through the source's ids.
/// \throws faiss::FaissException when an entry is no row of the source
std::vector<idx_t> to_faiss_ids(const gnnd::KnnGraphView& graph, const VectorSource& source);

}  // namespace faiss_ext
