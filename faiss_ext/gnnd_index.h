// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file gnnd_index.h
/// FAISS's graph indexes with add() by GNND: in place of faiss::IndexNSGFlat and faiss::IndexHNSWFlat, from which they
/// are derived. FAISS writes them to files as these, without the k-NN graph, and a FAISS that knows nothing of gnnd
/// reads and searches them.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include <cstdint>
#include <vector>

#include "faiss_ext/graph_builder.h"

namespace faiss_ext {

/// What IndexNSGGnnd and IndexHNSWGnnd have in common. Metrics: L2, inner product, L1 and Linf, as FAISS takes them:
/// for cosine add and search normalised vectors under inner product.
///
/// Beside FAISS's links an index keeps the k-NN graph, 8 n k bytes. Where FAISS has changed the index in the meantime,
/// or has read it, the graph is made of the links by gnnd::refine() when it is needed.
///
/// As FAISS's indexes they may be searched by many threads together, but not while one of the calls below changes them.
/// A call that throws leaves the index as it was. What is thrown is faiss::FaissException;
/// faiss::InterruptCallback is asked all along.
template <class FlatIndex>
class GnndIndex : public FlatIndex {
  public:
    /// Of an index by FAISS, whose vectors and links it takes over; that one is of no more use then.
    /// \throws faiss::FaissException unless its storage is a faiss::IndexFlat
    explicit GnndIndex(FlatIndex&& index);
    /// The same of a copy.
    explicit GnndIndex(const FlatIndex& index);
    /// A copy of everything.
    GnndIndex(const GnndIndex& other);
    GnndIndex& operator=(const GnndIndex&) = delete;

    /// Adds vectors. The first ones' graph is built, and linked as to_nsg() and to_hnsw() do. Later ones are appended
    /// to the graph (gnnd::append()), and links are chosen for them and for all whose neighbours have changed; now and
    /// then, when these were as many as there are objects, for all. Every object stays reachable from the entry point.
    /// \param n  vectors
    /// \param x  n x d, finite; the error for others names the row
    void add(idx_t n, const float* x) override;

    /// Takes the objects of another index of the same kind, dimension and metric, by GGM (gnnd::merge()); that one is
    /// empty then. Its object j becomes ntotal + j.
    /// \param add_id  0
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// The same, but the other one stays as it is.
    void merge_copy_of(const faiss::Index& other);

    /// Removes objects; the others move up, as in faiss::IndexFlat. The lists of neighbours that they leave are mended
    /// by gnnd::refine(), and all links chosen anew. \return how many there were
    std::size_t remove_ids(const faiss::IDSelector& selector) override;

    /// Removes all objects; parameters stay.
    void reset() override;

    /// The k-NN graph of the objects, ntotal x graph_k(), as of the last call that changed the index; of no objects
    /// where that was FAISS.
    const gnnd::KnnGraph& graph() const { return graph_; }
    /// Columns of the graphs to be built.
    virtual int graph_k() const = 0;

    /// Builds the graphs: `builder.params.recall` is what they must have, `builder.params.device` where they are made
    /// (a GPU where there is one, unless it says otherwise; with FAISS's resources after `builder.use()`), which
    /// chooses the links of all, too; `builder.stats` how that went. With `verbose` set the index prints that, too.
    GnndGraphBuilder builder;

  protected:
    /// An empty one; `links` is FAISS's R or M.
    GnndIndex(int d, int links, faiss::MetricType metric);

  private:
    struct Change;
    void own_copies();
    gnnd::Metric metric() const;
    faiss::IndexFlat& rows() const;
    bool has_graph() const { return graph_.n() == this->ntotal; }
    /// Of any index of the kind.
    gnnd::KnnGraph graph_of(const FlatIndex& index);
    void prepare();
    gnnd::KnnGraph append(const faiss::IndexFlat& storage, idx_t old, Change& change);
    void check_size(idx_t n) const;
    /// Called after a change.
    virtual void fit_beam() {}

    gnnd::KnnGraph graph_;               // of so many objects as there are, or out of date
    std::vector<std::int32_t> parents_;  // the tree that holds all objects, see detail/link_tree.h; like graph_
    std::int64_t chosen_ = 0;            // objects whose links were chosen since those of all were
    std::int64_t unmeasured_ = 0;        // objects added since the recall was measured
};

extern template class GnndIndex<faiss::IndexNSGFlat>;
extern template class GnndIndex<faiss::IndexHNSWFlat>;

/// faiss::IndexNSGFlat with add() by GNND, which unlike FAISS's may be called again. `GK` is the number of columns of
/// its graphs; FAISS's other parameters of building are not looked at.
class IndexNSGGnnd : public GnndIndex<faiss::IndexNSGFlat> {
  public:
    /// \param d  components of a vector
    /// \param R  links of an object, 1 to 4096; a GPU chooses up to 128, more are left to the CPU
    explicit IndexNSGGnnd(int d, int R = 32, faiss::MetricType metric = faiss::METRIC_L2);
    using GnndIndex::GnndIndex;

    /// As FAISS's. Of no more objects than the beam is wide, of which FAISS would draw random ones without end, all are
    /// compared; where there are fewer than k the rest is -1.
    void search(idx_t n, const float* x, idx_t k, float* distances, idx_t* labels,
                const faiss::SearchParameters* params = nullptr) const override;

    int graph_k() const override { return GK; }

  private:
    void fit_beam() override;

    int beam_ = 0, lowered_ = 0;  // search_L as it was set, and what it was lowered to
};

/// faiss::IndexHNSWFlat with add() by GNND. All links are on level 0.
class IndexHNSWGnnd : public GnndIndex<faiss::IndexHNSWFlat> {
  public:
    /// \param d  components of a vector
    /// \param M  half of the links of an object, 2 to 2048
    explicit IndexHNSWGnnd(int d, int M = 32, faiss::MetricType metric = faiss::METRIC_L2);
    using GnndIndex::GnndIndex;

    int graph_k() const override { return GK; }

    int GK = 64;  ///< columns of the graphs to be built
};

}  // namespace faiss_ext
