// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file gnnd_index.h
/// FAISS's graph indexes with add() by GNND: each is derived from the one of FAISS in whose place it comes. FAISS
/// writes them to files as these, without the k-NN graph, and a FAISS that knows nothing of gnnd reads and searches
/// them.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <type_traits>
#include <vector>

#include "faiss_ext/graph_builder.h"
#include "faiss_ext/with_gnnd.h"

namespace faiss_ext {

namespace detail {
class GraphChange;
template <class GraphIndex>
class LinkChange;
struct IndexSample;
}  // namespace detail

/// An index with GNND, derived from one of FAISS. Metrics: L2, inner product, L1 and Linf, as FAISS takes them: for
/// cosine add and search normalised vectors under inner product. Storages that compress compare under L2 and inner
/// product.
///
/// Beside FAISS's links an index keeps the k-NN graph, 8 n k bytes. Where FAISS has read the index, or has changed it
/// in the meantime by methods of its own classes, the graph is made of the links by gnnd::refine() when it is needed,
/// and all links are chosen anew. Each call notices that by the number of objects and by 256 of them, evenly among all;
/// who overwrites single vectors of the storage in place must remove them and add the others. A storage or links of
/// another number of objects than the index are an error.
///
/// If the storage compresses, the first add() builds the graph from the vectors that it is given. They are gone
/// afterwards: for every later call the storage's reconstructions stand for them, n x d floats for the time of the
/// call, while new vectors are compared as they are. Recall is not measured then, for what it would be of is gone.
///
/// As FAISS's indexes they may be searched by many threads together, but not while one of the calls below changes them.
/// A call that throws leaves the index as it was. What is thrown is faiss::FaissException;
/// faiss::InterruptCallback is asked all along.
/// \tparam FaissIndex  IndexNSGFlat, IndexNSGSQ, IndexNSGPQ, IndexHNSWFlat, IndexHNSWSQ or IndexHNSWPQ
template <class FaissIndex>
class GnndIndex : public FaissIndex, public WithGnnd {
  public:
    using Replaced = FaissIndex;  ///< the class of FAISS in whose place it comes

    /// Of an index by FAISS, whose vectors and links it takes over; that one is of no more use then.
    /// \throws faiss::FaissException for a storage or a metric that GNND does not take
    explicit GnndIndex(FaissIndex&& index);
    /// The same of a copy.
    explicit GnndIndex(const FaissIndex& index);
    /// A copy of everything.
    GnndIndex(const GnndIndex& other);
    GnndIndex& operator=(const GnndIndex&) = delete;

    /// Adds vectors. The first ones' graph is built, and linked as to_nsg() and to_hnsw() do. Later ones are appended
    /// to the graph (gnnd::append()), and links are chosen for them and for all whose neighbours have changed; for all
    /// where these are most of them, and when there are a quarter more than when they were last. Every object stays
    /// reachable from the entry point.
    /// \param n  vectors
    /// \param x  n x d, finite; the error for others names the row
    /// \throws faiss::FaissException also when a storage that is to be trained is not
    void add(idx_t n, const float* x) override;

    /// merge_copy_of(), after which the other one is empty.
    /// \param add_id  0
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// merge_from() asks this first, as FAISS's IndexIDMap and IndexPreTransform ask the index that they hold.
    /// \throws faiss::FaissException for another kind, dimension or metric
    void check_compatible_for_merge(const faiss::Index& other) const override;

    /// \throws faiss::FaissException for another kind, dimension or metric, and as add(). A storage that compresses
    ///         encodes what the other's decodes to.
    void merge_copy_of(const faiss::Index& other) override;

    /// \throws as merge_copy_of()
    std::unique_ptr<faiss::Index> merged_with(const faiss::Index& other) const override;

    /// Removes objects; the others move up, as in faiss::IndexFlat. The lists of neighbours that they leave are mended
    /// by gnnd::refine(), and all links chosen anew. \return how many there were
    std::size_t remove_ids(const faiss::IDSelector& selector) override;

    /// Removes all objects; parameters stay.
    void reset() override;

  protected:
    struct Made {};       ///< tells apart the constructor of new indexes
    struct NoObjects {};  ///< and of copies without any
    /// An empty one. \param arguments  of FAISS's constructor
    template <class... Arguments>
    explicit GnndIndex(Made, Arguments... arguments) : FaissIndex(arguments...) {
        check_kind();
    }
    /// A copy of all settings.
    GnndIndex(const GnndIndex& other, NoObjects);

  private:
    using GraphIndex =
        std::conditional_t<std::is_base_of_v<faiss::IndexNSG, FaissIndex>, faiss::IndexNSG, faiss::IndexHNSW>;
    void own_copies();
    void check_kind() const;
    void check_alike(const faiss::Index& other) const;
    void check_size(idx_t n) const;
    gnnd::Metric metric() const;
    faiss::IndexFlatCodes& codes() const;
    bool has_graph(const detail::IndexSample& now) const;
    bool has_parents(const detail::IndexSample& now) const;
    void remember(const faiss::IndexFlatCodes& storage);
    /// The graph of an index: what it keeps, or one that was made of its links.
    struct GraphOf {
        gnnd::KnnGraph made;
        gnnd::KnnGraphView view;
    };
    /// Of any index of the kind, with its storage.
    GraphOf graph_of(const FaissIndex& index, const faiss::IndexFlatCodes& storage);
    void prepare();
    void append(const faiss::IndexFlat& rows, idx_t old);
    bool links_all(idx_t n, idx_t concerned) const;
    bool appends_rows(idx_t old, idx_t n) const;
    gnnd::detail::DeviceGraph* place_on_gpu(idx_t n);
    bool build_on_gpu(idx_t n, const float* x);
    detail::GraphChange append_on_gpu(gnnd::detail::DeviceGraph& there, const faiss::IndexFlat& rows, idx_t old,
                                      bool measured);
    gnnd::KnnGraph append_all(const faiss::IndexFlat& rows, idx_t old, bool measured);
    /// Two indexes whose objects come into this one, those of the second behind those of the first.
    struct Union;
    /// \param first  *this, or one that *this, empty, is an empty_copy() of
    void merge_of(const GnndIndex& first, const faiss::Index& second);
    void merge_on_host(const Union& both);
    bool merge_on_gpu(const Union& both);
    void choose_all(detail::LinkChange<GraphIndex>& links, const faiss::IndexFlat& rows, const gnnd::KnnGraph& graph,
                    const gnnd::detail::DeviceGraph* there, const std::vector<std::int32_t>& former,
                    std::future<void> copying = {});
    void link_all(const faiss::IndexFlat& rows, const gnnd::detail::DeviceGraph* there = nullptr,
                  const std::vector<std::int32_t>& former = {});
    void keep(detail::LinkChange<GraphIndex>& links, idx_t n, std::int64_t chosen);
    /// Called after a change.
    virtual void fit_beam() {}
};

/// The common part of the NSGs. `GK` is the number of columns of their graphs; FAISS's other parameters of building
/// are not looked at. Unlike FAISS's they may be added to again.
template <class FaissIndex>
class GnndNSG : public GnndIndex<FaissIndex> {
  public:
    using GnndIndex<FaissIndex>::GnndIndex;

    /// As FAISS's. Of no more objects than the beam is wide, of which FAISS would draw random ones without end, all are
    /// compared; where there are fewer than k the rest is -1.
    void search(idx_t n, const float* x, idx_t k, float* distances, idx_t* labels,
                const faiss::SearchParameters* params = nullptr) const override;

    int graph_k() const override { return this->GK; }   ///< GK
    void set_graph_k(int k) override { this->GK = k; }  ///< sets GK

  protected:
    /// A copy of all settings.
    GnndNSG(const GnndNSG& other, typename GnndIndex<FaissIndex>::NoObjects none)
        : GnndIndex<FaissIndex>(other, none), beam_(other.beam_), lowered_(other.lowered_) {}

  private:
    void fit_beam() override;

    // search_L as it was set, and what it was lowered to. An index that was read does not tell: a beam that is narrower
    // than FAISS's default and as wide as there are objects was lowered from there.
    int beam_ = std::max(this->nsg.search_L, faiss::NSG().search_L);
    int lowered_ = this->nsg.search_L < beam_ && this->nsg.search_L == this->ntotal ? this->nsg.search_L : 0;
};

/// The common part of the HNSWs. Objects that were added since links were chosen for all are on level 0 alone; of the
/// others as many are on the levels above as in FAISS.
template <class FaissIndex>
class GnndHNSW : public GnndIndex<FaissIndex> {
  public:
    using GnndIndex<FaissIndex>::GnndIndex;

    int graph_k() const override { return GK; }   ///< GK
    void set_graph_k(int k) override { GK = k; }  ///< sets GK

    int GK = 64;  ///< columns of the graphs to be built

  protected:
    /// A copy of all settings.
    GnndHNSW(const GnndHNSW& other, typename GnndIndex<FaissIndex>::NoObjects none)
        : GnndIndex<FaissIndex>(other, none), GK(other.GK) {}
};

extern template class GnndIndex<faiss::IndexNSGFlat>;
extern template class GnndIndex<faiss::IndexNSGSQ>;
extern template class GnndIndex<faiss::IndexNSGPQ>;
extern template class GnndIndex<faiss::IndexHNSWFlat>;
extern template class GnndIndex<faiss::IndexHNSWSQ>;
extern template class GnndIndex<faiss::IndexHNSWPQ>;
extern template class GnndNSG<faiss::IndexNSGFlat>;
extern template class GnndNSG<faiss::IndexNSGSQ>;
extern template class GnndNSG<faiss::IndexNSGPQ>;
extern template class GnndHNSW<faiss::IndexHNSWFlat>;
extern template class GnndHNSW<faiss::IndexHNSWSQ>;
extern template class GnndHNSW<faiss::IndexHNSWPQ>;

/// faiss::IndexNSGFlat with add() by GNND.
class IndexNSGGnnd : public GnndNSG<faiss::IndexNSGFlat> {
  public:
    /// \param d  components of a vector
    /// \param R  links of an object, 1 to 4096; a GPU chooses up to 128, more are left to the CPU
    explicit IndexNSGGnnd(int d, int R = 32, faiss::MetricType metric = faiss::METRIC_L2);
    using GnndNSG::GnndNSG;
    /// A copy of everything.
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<IndexNSGGnnd>(*this); }
    /// A copy of all but the objects.
    std::unique_ptr<faiss::Index> empty_copy() const override {
        return std::unique_ptr<IndexNSGGnnd>(new IndexNSGGnnd(*this, NoObjects()));
    }
};

/// faiss::IndexNSGSQ with add() by GNND: vectors as a scalar quantizer's codes, to be trained before add() for most
/// types.
class IndexNSGSQGnnd : public GnndNSG<faiss::IndexNSGSQ> {
  public:
    /// \param type    of the codes, e.g. faiss::ScalarQuantizer::QT_8bit
    /// \param metric  L2 or inner product
    IndexNSGSQGnnd(int d, faiss::ScalarQuantizer::QuantizerType type, int R = 32,
                   faiss::MetricType metric = faiss::METRIC_L2);
    using GnndNSG::GnndNSG;
    /// A copy of everything.
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<IndexNSGSQGnnd>(*this); }
    /// A copy of all but the objects.
    std::unique_ptr<faiss::Index> empty_copy() const override {
        return std::unique_ptr<IndexNSGSQGnnd>(new IndexNSGSQGnnd(*this, NoObjects()));
    }
};

/// faiss::IndexNSGPQ with add() by GNND: vectors as a product quantizer's codes of 8 bits, under L2, to be trained
/// before add().
class IndexNSGPQGnnd : public GnndNSG<faiss::IndexNSGPQ> {
  public:
    /// \param pq_m  parts that a vector is divided into, a divisor of d
    IndexNSGPQGnnd(int d, int pq_m, int R = 32);
    using GnndNSG::GnndNSG;
    /// A copy of everything.
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<IndexNSGPQGnnd>(*this); }
    /// A copy of all but the objects.
    std::unique_ptr<faiss::Index> empty_copy() const override {
        return std::unique_ptr<IndexNSGPQGnnd>(new IndexNSGPQGnnd(*this, NoObjects()));
    }
};

/// faiss::IndexHNSWFlat with add() by GNND.
class IndexHNSWGnnd : public GnndHNSW<faiss::IndexHNSWFlat> {
  public:
    /// \param d  components of a vector
    /// \param M  half of the links of an object, 2 to 2048
    explicit IndexHNSWGnnd(int d, int M = 32, faiss::MetricType metric = faiss::METRIC_L2);
    using GnndHNSW::GnndHNSW;
    /// A copy of everything.
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<IndexHNSWGnnd>(*this); }
    /// A copy of all but the objects.
    std::unique_ptr<faiss::Index> empty_copy() const override {
        return std::unique_ptr<IndexHNSWGnnd>(new IndexHNSWGnnd(*this, NoObjects()));
    }
};

/// faiss::IndexHNSWSQ with add() by GNND, as IndexNSGSQGnnd.
class IndexHNSWSQGnnd : public GnndHNSW<faiss::IndexHNSWSQ> {
  public:
    /// \param type    of the codes
    /// \param metric  L2 or inner product
    IndexHNSWSQGnnd(int d, faiss::ScalarQuantizer::QuantizerType type, int M = 32,
                    faiss::MetricType metric = faiss::METRIC_L2);
    using GnndHNSW::GnndHNSW;
    /// A copy of everything.
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<IndexHNSWSQGnnd>(*this); }
    /// A copy of all but the objects.
    std::unique_ptr<faiss::Index> empty_copy() const override {
        return std::unique_ptr<IndexHNSWSQGnnd>(new IndexHNSWSQGnnd(*this, NoObjects()));
    }
};

/// faiss::IndexHNSWPQ with add() by GNND, as IndexNSGPQGnnd.
class IndexHNSWPQGnnd : public GnndHNSW<faiss::IndexHNSWPQ> {
  public:
    /// \param pq_m  parts that a vector is divided into, a divisor of d
    IndexHNSWPQGnnd(int d, int pq_m, int M = 32);
    using GnndHNSW::GnndHNSW;
    /// A copy of everything.
    std::unique_ptr<faiss::Index> copy() const override { return std::make_unique<IndexHNSWPQGnnd>(*this); }
    /// A copy of all but the objects.
    std::unique_ptr<faiss::Index> empty_copy() const override {
        return std::unique_ptr<IndexHNSWPQGnnd>(new IndexHNSWPQGnnd(*this, NoObjects()));
    }
};

}  // namespace faiss_ext
