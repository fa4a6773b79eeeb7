// SPDX-License-Identifier: MIT
#include "faiss_ext/gnnd_index.h"

#include <faiss/clone_index.h>
#include <faiss/impl/IDSelector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/gnnd_index_add.h"
#include "faiss_ext/detail/gnnd_index_merge.h"
#include "faiss_ext/detail/index_change.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/index_sample.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/print.h"
#include "gnnd/detail/device_graph.h"
#include "gnnd/detail/far_links.h"

namespace faiss_ext {

using detail::AddedRows;
using detail::fail;
using detail::FloatRows;
using detail::GraphChange;
using detail::LinkChange;
using detail::Unmeasured;
using detail::view_rows;

void WithGnnd::keep_on_gpu(std::int64_t bytes) {
    if (bytes < -1) fail("keep_on_gpu: " + std::to_string(bytes) + " bytes, allowed are -1 and more");
    most_on_gpu_ = bytes;
    on_gpu_.reset();
}

std::size_t WithGnnd::kept_on_gpu() const {
    return on_gpu_ == nullptr ? 0 : on_gpu_->bytes();
}

/// The vectors and links are those of another index so far.
template <class FaissIndex>
void GnndIndex<FaissIndex>::own_copies() {
    this->own_fields = false;
    detail::with_faiss_errors([&] {
        check_kind();
        if constexpr (std::is_base_of_v<faiss::IndexNSG, FaissIndex>)
            if (auto& graph = this->nsg.final_graph) graph = std::make_shared<faiss::nsg::Graph<int>>(*graph);
        this->storage = faiss::clone_index(this->storage);
    });
    this->own_fields = true;
}

template <class FaissIndex>
GnndIndex<FaissIndex>::GnndIndex(FaissIndex&& index) : FaissIndex(index) {
    const bool owned = std::exchange(this->own_fields, false);
    detail::with_faiss_errors([&] { check_kind(); });
    this->own_fields = owned;
    index.own_fields = false;
    index.storage = nullptr;
    index.ntotal = 0;
}

template <class FaissIndex>
GnndIndex<FaissIndex>::GnndIndex(const FaissIndex& index) : FaissIndex(index) {
    own_copies();
}

template <class FaissIndex>
GnndIndex<FaissIndex>::GnndIndex(const GnndIndex& other) : GnndIndex(static_cast<const FaissIndex&>(other)) {
    builder = other.builder;
    graph_ = other.graph_;
    parents_ = other.parents_;
    missed_ = other.missed_;
    graph_fits_ = other.graph_fits_;
    parents_fit_ = other.parents_fit_;
    linked_ = other.linked_;
    unmeasured_ = other.unmeasured_;
    most_on_gpu_ = other.most_on_gpu_;
}

template <class FaissIndex>
GnndIndex<FaissIndex>::GnndIndex(const GnndIndex& other, NoObjects) : FaissIndex(other) {
    this->own_fields = false;
    detail::with_faiss_errors([&] { this->storage = detail::empty_like(other.codes()).release(); });
    this->own_fields = true;
    FaissIndex::reset();
    builder = other.builder;
    most_on_gpu_ = other.most_on_gpu_;
}

template <class FaissIndex>
gnnd::Metric GnndIndex<FaissIndex>::metric() const {
    return to_gnnd_metric(this->metric_type);
}

template <class FaissIndex>
faiss::IndexFlatCodes& GnndIndex<FaissIndex>::codes() const {
    return detail::codes_of(*this, this->storage);
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::check_kind() const {
    metric();
    codes();
    if (detail::compresses(*this->storage) && this->metric_type != faiss::METRIC_L2 &&
        this->metric_type != faiss::METRIC_INNER_PRODUCT)
        fail(detail::class_of(*this) + ": codes are compared under l2 and ip, not " +
             std::string(gnnd::name_of(metric())));
}

/// True where graph_ is of the vectors that there are.
/// \param now  what sample_of() says of the index
template <class FaissIndex>
bool GnndIndex<FaissIndex>::has_graph(const detail::IndexSample& now) const {
    return graph_.n() == this->ntotal && now.vectors == graph_fits_;
}

/// The same of parents_ and its links.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::has_parents(const detail::IndexSample& now) const {
    return idx_t(parents_.size()) == this->ntotal && now.links == parents_fit_;
}

/// graph_ and parents_ are those of what the index holds now.
template <class FaissIndex>
void GnndIndex<FaissIndex>::remember(const faiss::IndexFlatCodes& storage) {
    const detail::IndexSample now = detail::sample_of(*this, storage);
    graph_fits_ = now.vectors;
    parents_fit_ = now.links;
}

template <class FaissIndex>
typename GnndIndex<FaissIndex>::GraphOf GnndIndex<FaissIndex>::graph_of(const FaissIndex& index,
                                                                        const faiss::IndexFlatCodes& storage) {
    if (const auto* made_here = dynamic_cast<const GnndIndex*>(&index);
        made_here != nullptr && made_here->has_graph(detail::sample_of(*made_here, made_here->codes())))
        return {{}, made_here->graph_};
    const int degree = detail::degree_of(index);
    GraphOf graph{gnnd::KnnGraph(index.ntotal, degree, metric()), {}};
    if (index.ntotal >= 2) {
        detail::require_links(index);
        for (std::int64_t i = 0; i < index.ntotal; ++i)
            std::copy_n(detail::links_of(index, i), degree, graph.made.ids() + i * degree);
        const FloatRows rows(storage);
        graph.made = builder.refine(view_rows(rows.flat(), 0, index.ntotal, metric()), graph.made, graph_k());
    }
    graph.view = graph.made;  // whose arrays move along with it
    return graph;
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::prepare() {
    builder.verbose = this->verbose;
    if (this->ntotal == 0) return;
    const faiss::IndexFlatCodes& storage = codes();
    const detail::IndexSample now = detail::sample_of(*this, storage);
    if (!has_parents(now)) parents_.clear();
    if (has_graph(now)) return;
    on_gpu_.reset();
    graph_ = graph_of(*this, storage).made;
    graph_fits_ = now.vectors;
    parents_.clear();  // those of other links
}

/// Chooses the links of all objects of a graph.
/// \param there    the same graph on a GPU; null: it is not there
/// \param former   as for TreeGrowth::attach_others()
/// \param copying  what writes the graph meanwhile, done afterwards; not valid: it is written
template <class FaissIndex>
void GnndIndex<FaissIndex>::choose_all(LinkChange<GraphIndex>& links, const faiss::IndexFlat& rows,
                                       const gnnd::KnnGraph& graph, const gnnd::detail::DeviceGraph* there,
                                       const std::vector<std::int32_t>& former, std::future<void> copying) {
    detail::LinkPlace place;
    if (builder.on_gpu) place = {builder.stats.device, builder.resources()};
    const VectorSource here = view_rows(rows, 0, rows.ntotal, metric());
    const auto choose_there = [&] {
        const VectorSource source(there->vectors(), metric());
        const gnnd::VectorView on_host = here.vectors();
        const bool levels = detail::upper_degree_for(static_cast<const GraphIndex&>(*this), rows.ntotal) > 0;
        if (gnnd::detail::needs_far_links(source.vectors(), there->graph(), levels ? &on_host : nullptr,
                                          detail::interrupt_hooks(), place.resources))
            return false;
        links.choose_all(source, rows, there->graph(), place, former);
        return true;
    };
    const bool chosen = there != nullptr && choose_there();
    if (copying.valid()) copying.get();
    if (!chosen) links.choose_all(here, rows, graph, place, former);
}

/// Those of graph_, which become the index's.
template <class FaissIndex>
void GnndIndex<FaissIndex>::link_all(const faiss::IndexFlat& rows, const gnnd::detail::DeviceGraph* there,
                                     const std::vector<std::int32_t>& former) {
    LinkChange links(static_cast<GraphIndex&>(*this), parents_, missed_);
    choose_all(links, rows, graph_, there, former);
    keep(links, rows.ntotal, 0);
}

/// An exception leaves all as it was; nothing may throw after links.keep().
/// \param chosen  objects whose links were chosen, 0: all
template <class FaissIndex>
void GnndIndex<FaissIndex>::keep(LinkChange<GraphIndex>& links, idx_t n, std::int64_t chosen) {
    if (this->verbose)
        detail::print_line(detail::class_of(*this) + ": " + std::to_string(n) + " objects, links of " +
                           (chosen == 0 ? "all" : std::to_string(chosen)) + " chosen");
    links.keep();
    if (chosen == 0) linked_ = n;
    unmeasured_ = 0;
    this->ntotal = n;
    fit_beam();
}

template <class FaissIndex>
std::size_t GnndIndex<FaissIndex>::remove_ids(const faiss::IDSelector& selector) {
    return detail::with_faiss_errors([&]() -> std::size_t {
        faiss::IndexFlatCodes& storage = codes();
        const idx_t n = storage.ntotal;
        std::vector<std::int32_t> left, numbers(n, -1);  // who stays, and as what
        for (idx_t i = 0; i < n; ++i) {
            if (selector.is_member(i)) continue;
            numbers[i] = std::int32_t(left.size());
            left.push_back(std::int32_t(i));
        }
        const auto count = idx_t(left.size());
        if (count == n) return 0;
        if (count == 0) {
            reset();
            return n;
        }
        prepare();
        on_gpu_.reset();
        const FloatRows all(storage);
        const faiss::IndexFlat kept = detail::copy_rows(all.flat(), left);
        gnnd::KnnGraph rest = detail::graph_of_some(graph_, left, numbers);
        GraphChange change(graph_, count == 1 ? std::move(rest)
                                              : builder.refine(view_rows(kept, 0, count, metric()), rest, graph_k()));
        link_all(kept);
        change.keep();
        detail::keep_rows(storage, left);
        remember(storage);
        return std::size_t(n - count);
    });
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::reset() {
    FaissIndex::reset();
    graph_ = {};
    parents_.clear();
    linked_ = unmeasured_ = 0;
    missed_ = 0;
    on_gpu_.reset();
    fit_beam();
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::check_size(idx_t n) const {
    if constexpr (std::is_base_of_v<faiss::IndexNSG, FaissIndex>)
        detail::check_links(detail::class_of(*this).c_str(), n, detail::degree_of(*this));
}

template class GnndIndex<faiss::IndexNSGFlat>;
template class GnndIndex<faiss::IndexNSGSQ>;
template class GnndIndex<faiss::IndexNSGPQ>;
template class GnndIndex<faiss::IndexHNSWFlat>;
template class GnndIndex<faiss::IndexHNSWSQ>;
template class GnndIndex<faiss::IndexHNSWPQ>;

}  // namespace faiss_ext
