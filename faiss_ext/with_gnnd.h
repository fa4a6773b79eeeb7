// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file with_gnnd.h
/// What FAISS's graph indexes with GNND have in common, and keep beside FAISS's links.

#include <faiss/Index.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "faiss_ext/graph_builder.h"
#include "gnnd/graph.h"

namespace gnnd::detail {
class DeviceGraph;
}

namespace faiss_ext {

/// The common interface of the indexes of gnnd_index.h, whichever of FAISS's they are.
class WithGnnd {
  public:
    virtual ~WithGnnd() = default;

    /// The k-NN graph of the objects, ntotal x graph_k(), as of the last call of GnndIndex that changed the index; of
    /// no objects where there was none. Where the storage compresses, its distances are those of the vectors as they
    /// were when they were compared: those given to add() in it, those decoded from the storage afterwards.
    const gnnd::KnnGraph& graph() const { return graph_; }
    /// Columns of the graphs to be built.
    virtual int graph_k() const = 0;
    /// \param k  1 to gnnd::kMaxK, for the next call
    virtual void set_graph_k(int k) = 0;

    /// Takes the objects of another index of the same kind, dimension and metric, which stays as it is, by GGM
    /// (gnnd::merge()). Its object j becomes ntotal + j. Where `builder.params.recall_at` is 0, so many neighbours
    /// count as an object has links: these are chosen among them.
    virtual void merge_copy_of(const faiss::Index& other) = 0;
    /// What a copy() would be after merge_copy_of(), in less time.
    virtual std::unique_ptr<faiss::Index> merged_with(const faiss::Index& other) const = 0;
    /// A copy of everything, of the same class.
    virtual std::unique_ptr<faiss::Index> copy() const = 0;
    /// A copy of all but the objects: an empty index of the same class and settings, trained if this one is.
    virtual std::unique_ptr<faiss::Index> empty_copy() const = 0;

    /// Most bytes of a GPU's memory for the index's vectors and its graph, 4 d + 16 k an object and room for a quarter
    /// more: an index that is built on a GPU and grows keeps both there from one add() to the next, so that each moves
    /// only what it changes. They go back when the index is reset, removed from, merged into or changed by others, when
    /// an add() fails, and at each call of this function; a copy has none. Where they would take more, or
    /// `builder.params.device_memory` is set, or the storage compresses, each add() takes all to the GPU and back.
    /// \param bytes  -1, as it is at first: a quarter of what is free there; 0: nothing is kept
    /// \throws faiss::FaissException for less than -1
    void keep_on_gpu(std::int64_t bytes);
    /// Bytes that it has there now.
    std::size_t kept_on_gpu() const;

    /// Builds the graphs: `builder.params.recall` is what they must have, `builder.params.device` where they are made
    /// (a GPU where there is one, unless it says otherwise; with FAISS's resources after `builder.use()`), which
    /// chooses the links of all, too; `builder.stats` how that went. With `verbose` set the index prints that, too.
    GnndGraphBuilder builder;

  protected:
    WithGnnd() = default;
    WithGnnd(const WithGnnd&) = delete;
    WithGnnd& operator=(const WithGnnd&) = delete;

    gnnd::KnnGraph graph_;               ///< of so many objects as there are, or out of date
    std::vector<std::int32_t> parents_;  ///< the tree that holds all objects, see detail/link_tree.h; like graph_
    double missed_ = 0;              ///< share of them that narrow searches miss, as of the last choice of all links
    std::uint64_t graph_fits_ = 0;   ///< the vectors that graph_ is of, see detail/index_sample.h
    std::uint64_t parents_fit_ = 0;  ///< the links that parents_ are of
    std::int64_t linked_ = 0;        ///< objects that there were when the links of all were chosen
    std::int64_t unmeasured_ = 0;    ///< objects added since the recall was measured
    std::int64_t most_on_gpu_ = -1;  ///< bytes, see keep_on_gpu()
    std::shared_ptr<gnnd::detail::DeviceGraph> on_gpu_;  ///< graph_ and its vectors; null: not there
};

}  // namespace faiss_ext
