// SPDX-License-Identifier: MIT
#pragma once
/// \file index_change.h
/// State of an index with GNND that FAISS's has not, for the time of a change: unless it is kept, all is as before
/// afterwards.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "faiss_ext/detail/grow_links.h"
#include "faiss_ext/detail/link_tree.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/graph_builder.h"
#include "gnnd/detail/append_rows.h"
#include "gnnd/detail/device_graph.h"

namespace faiss_ext::detail {

/// A builder's parameters are others in the meantime.
class ChangedParams {
  public:
    ChangedParams(const ChangedParams&) = delete;
    ChangedParams& operator=(const ChangedParams&) = delete;

  protected:
    explicit ChangedParams(GnndGraphBuilder& builder) : params_(builder.params), before_(builder.params) {}
    ~ChangedParams() { params_ = before_; }

    GnndParams& params_;

  private:
    const GnndParams before_;
};

/// A builder measures no recall.
struct Unmeasured : ChangedParams {
    explicit Unmeasured(GnndGraphBuilder& builder) : ChangedParams(builder) { params_.recall = 0; }
};

/// The recall that a builder is asked for counts so many columns, unless it was said which. Merges must have it: what
/// they miss lies between both sets, and the first columns, most of which each set has brought along, show little of
/// it.
struct HeldToColumns : ChangedParams {
    HeldToColumns(GnndGraphBuilder& builder, int columns) : ChangedParams(builder) {
        if (params_.recall_at == 0) params_.recall_at = columns;
    }
};

/// A graph of one object, whose vector is checked as others are.
gnnd::KnnGraph graph_of_one(const float* x, int d, gnnd::Metric metric, int k, GnndGraphBuilder& builder);

/// An n x k graph with room for half as many rows more where there is, which little adds fill. They would copy all of
/// it, once.
gnnd::KnnGraph graph_that_grows(std::int64_t n, int k, gnnd::Metric metric);

/// The same graph in memory of its own.
gnnd::KnnGraph copy_graph(const gnnd::KnnGraphView& graph);

/// The rows of some objects, as far as they hold these; without distances.
/// \param objects  whose rows they are, ascending
/// \param numbers  of every object which of these it is, or -1
gnnd::KnnGraph graph_of_some(const gnnd::KnnGraphView& graph, const std::vector<std::int32_t>& objects,
                             const std::vector<std::int32_t>& numbers);

/// An index's graph on a GPU, which goes at the end of a change unless it is kept.
class OnGpu {
  public:
    explicit OnGpu(std::shared_ptr<gnnd::detail::DeviceGraph>& graph) : graph_(graph) {}
    OnGpu(const OnGpu&) = delete;
    OnGpu& operator=(const OnGpu&) = delete;
    ~OnGpu() {
        if (!kept_) graph_.reset();
    }
    void keep() { kept_ = true; }

  private:
    std::shared_ptr<gnnd::detail::DeviceGraph>& graph_;
    bool kept_ = false;
};

/// A k-NN graph that changes.
class GraphChange {
  public:
    /// Another comes in its place.
    GraphChange(gnnd::KnnGraph& graph, gnnd::KnnGraph whole);
    /// Some rows change, and some come behind, once put_in() is called.
    GraphChange(gnnd::KnnGraph& graph, gnnd::detail::AppendedRows rows);
    GraphChange(const GraphChange&) = delete;
    GraphChange& operator=(const GraphChange&) = delete;
    ~GraphChange();

    /// The objects that were there before and have others among their nearest now, ascending.
    /// \param columns  of a row that count
    std::vector<std::int32_t> changed(std::int64_t columns) const;
    /// Changes the rows, unless another graph has come in the place of all.
    void put_in();
    void keep() { kept_ = true; }

  private:
    gnnd::KnnGraph& graph_;
    gnnd::KnnGraph whole_;                            // the one before
    std::int64_t old_;                                // objects that there were
    std::optional<gnnd::detail::AppendedRows> rows_;  // with what has left the rows
    bool put_in_ = false, kept_ = false;
};

/// Links of an index that change.
/// \tparam GraphIndex  faiss::IndexNSG or faiss::IndexHNSW
template <class GraphIndex>
class LinkChange {
  public:
    /// \param index    its links, of so many objects as there are parents; of others where there are none
    /// \param parents  the tree among them
    /// \param missed   the share that narrow searches miss, which choose_all() tells choose_added()
    LinkChange(GraphIndex& index, std::vector<std::int32_t>& parents, double& missed)
        : index_(index), parents_(parents), missed_(missed) {}
    LinkChange(const LinkChange&) = delete;
    LinkChange& operator=(const LinkChange&) = delete;
    ~LinkChange();

    /// Takes the memory that choose_all() fills, which may be done by another thread before.
    /// \param n  objects that there will be
    void make_room_for_all(std::int64_t n);
    /// Chooses the links of all objects.
    /// \param source  the vectors on the host, or on the GPU of `place`
    /// \param rows    the same on the host
    /// \param graph   of them, where the source is or on the host
    /// \param place   who chooses
    /// \param former  as for TreeGrowth::attach_others()
    void choose_all(const VectorSource& source, const faiss::IndexFlat& rows, const gnnd::KnnGraphView& graph,
                    const LinkPlace& place, const std::vector<std::int32_t>& former = {});
    /// Chooses those of added objects and where these make a difference: grow_links(). \return how many were chosen
    /// \param pruned  as for grow_links(), on its way; not valid: not there
    std::int64_t choose_added(const faiss::IndexFlat& rows, const gnnd::KnnGraphView& graph,
                              std::future<gnnd::detail::PrunedObjects> pruned,
                              const std::vector<std::int32_t>& changed);
    /// An exception leaves all as it was.
    void keep();

  private:
    GraphIndex& index_;
    std::vector<std::int32_t>& parents_;
    double& missed_;
    LinkTree all_;                   // links of all, chosen anew
    std::optional<LinkRows> grown_;  // or those of the index, changed
    std::int64_t old_ = 0, n_ = 0;
};

extern template class LinkChange<faiss::IndexNSG>;
extern template class LinkChange<faiss::IndexHNSW>;

}  // namespace faiss_ext::detail
