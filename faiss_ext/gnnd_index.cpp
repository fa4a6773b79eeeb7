// SPDX-License-Identifier: MIT
#include "faiss_ext/gnnd_index.h"

#include <faiss/clone_index.h>
#include <faiss/impl/IDSelector.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/grow_links.h"
#include "faiss_ext/detail/index_change.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/index_sample.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/print.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/merge.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

using detail::AddedRows;
using detail::fail;
using detail::FloatRows;
using detail::graph_of_one;
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
    graph_fits_ = other.graph_fits_;
    parents_fit_ = other.parents_fit_;
    chosen_ = other.chosen_;
    unmeasured_ = other.unmeasured_;
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

/// Whether graph_ is of the vectors that there are.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::has_graph() const {
    return graph_.n() == this->ntotal && detail::sample_of(*this, codes()).vectors == graph_fits_;
}

/// graph_ and parents_ are those of what the index holds now.
template <class FaissIndex>
void GnndIndex<FaissIndex>::remember(const faiss::IndexFlatCodes& storage) {
    const detail::IndexSample now = detail::sample_of(*this, storage);
    graph_fits_ = now.vectors;
    parents_fit_ = now.links;
}

template <class FaissIndex>
gnnd::KnnGraph GnndIndex<FaissIndex>::graph_of(const FaissIndex& index, const faiss::IndexFlat& rows) {
    if (const auto* made_here = dynamic_cast<const GnndIndex*>(&index); made_here != nullptr && made_here->has_graph())
        return made_here->graph_;
    const int degree = detail::degree_of(index);
    gnnd::KnnGraph links(index.ntotal, degree, metric());
    if (index.ntotal < 2) return links;
    detail::require_links(index);
    for (std::int64_t i = 0; i < index.ntotal; ++i)
        std::copy_n(detail::links_of(index, i), degree, links.ids() + i * degree);
    return builder.refine(view_rows(rows, 0, index.ntotal, metric()), links, graph_k());
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::prepare() {
    builder.verbose = this->verbose;
    if (this->ntotal == 0) return;
    const faiss::IndexFlatCodes& storage = codes();
    const detail::IndexSample now = detail::sample_of(*this, storage);
    if (now.links != parents_fit_) parents_.clear();
    if (has_graph()) return;
    on_gpu_.reset();
    graph_ = graph_of(*this, FloatRows(storage).flat());
    graph_fits_ = now.vectors;
    parents_.clear();  // those of other links
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::add(idx_t n, const float* x) {
    detail::with_faiss_errors([&] {
        if (!this->is_trained) fail(detail::class_of(*this) + "::add: the index is not trained");
        if (n == 0) return;
        faiss::IndexFlatCodes& storage = codes();
        const idx_t old = storage.ntotal;
        check_size(old + n);
        prepare();
        if (old == 0 && build_on_gpu(n, x)) return;
        AddedRows added(storage, n, x);
        const FloatRows rows(storage, old, n, x);
        if (old > 0) {
            append(rows.flat(), old);
        } else {
            GraphChange graph(graph_, n == 1 ? graph_of_one(x, this->d, metric(), graph_k(), builder)
                                             : builder.build(view_rows(rows.flat(), 0, n, metric()), graph_k()));
            link_all(rows.flat());
            graph.keep();
        }
        added.keep();
        remember(storage);
    });
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::append(const faiss::IndexFlat& rows, idx_t old) {
    constexpr idx_t kShare = 100;  // of the objects: to measure the recall takes longer than to add a few
    idx_t unmeasured = unmeasured_ + rows.ntotal - old;
    const bool measured =
        !detail::compresses(*this->storage) && (builder.params.recall == 1 || unmeasured * kShare >= old);
    if (measured) unmeasured = 0;
    const VectorSource all = view_rows(rows, 0, rows.ntotal, metric());
    const bool grows = !detail::compresses(*this->storage) && old > graph_.k() && graph_.k() == graph_k();
    gnnd::detail::DeviceGraph* const there = grows ? place_on_gpu(rows.ntotal) : nullptr;
    detail::OnGpu on_gpu(on_gpu_);
    GraphChange graph = there != nullptr ? append_on_gpu(*there, rows, old, measured)
                        : !measured && appends_rows(old, rows.ntotal)
                            ? GraphChange(graph_, builder.append_rows(all, graph_))
                            : GraphChange(graph_, append_all(rows, old, measured));
    // Of farther ones hardly any are linked. Measured: with 8, 16, 32 and 64 columns searches find as much.
    const std::vector<std::int32_t> changed = graph.changed(std::max(detail::degree_of(*this) / 2, 1));
    const idx_t concerned = chosen_ + idx_t(changed.size()) + rows.ntotal - old;
    if (idx_t(parents_.size()) != old || concerned > rows.ntotal) {
        link_all(rows, there);
    } else {
        LinkChange links(static_cast<GraphIndex&>(*this), parents_);
        const detail::PrunedRows pruned =
            there != nullptr ? detail::PrunedRows{there->vectors(), there->graph(), builder.resources()}
                             : detail::PrunedRows{all.on_host(), graph_};
        const std::int64_t chosen = links.choose_added(pruned, rows, graph_, changed);
        keep(links, rows.ntotal, chosen_ + chosen);
    }
    graph.keep();
    if (there != nullptr) on_gpu.keep();
    unmeasured_ = unmeasured;
}

/// What is kept on the GPU where the builder runs, of any number of objects, which has room for n; null where that is
/// the CPU, or where the GPU is not to hold them.
template <class FaissIndex>
gnnd::detail::DeviceGraph* GnndIndex<FaissIndex>::place_on_gpu(idx_t n) {
    const gnnd::Device device = builder.place();
    const bool may = device.kind == gnnd::Device::Kind::cuda && most_on_gpu_ != 0 &&
                     builder.params.device_memory == 0 && detail::degree_of(*this) <= gnnd::kMaxGpuDegree;
    const bool fits = on_gpu_ != nullptr && on_gpu_->device() == device.index && on_gpu_->graph().k == graph_k();
    if (!may || !fits) on_gpu_.reset();
    if (may && !fits)
        on_gpu_ = gnnd::cuda::make_device_graph(device.index, this->d, graph_k(), metric(),
                                                std::size_t(std::max<std::int64_t>(most_on_gpu_, 0)));
    if (on_gpu_ != nullptr && n > on_gpu_->room()) on_gpu_.reset();
    return on_gpu_.get();
}

/// The first vectors: their graph is built on a GPU, and links chosen by it there, while the host stores them and takes
/// memory for the rest.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::build_on_gpu(idx_t n, const float* x) {
    gnnd::detail::DeviceGraph* const there = n > 1 ? place_on_gpu(n) : nullptr;
    if (there == nullptr) return false;
    const detail::OnGpu not_kept(on_gpu_);  // that is for indexes that grow
    faiss::IndexFlatCodes& storage = codes();
    LinkChange links(static_cast<GraphIndex&>(*this), parents_);
    gnnd::KnnGraph graph;
    std::optional<AddedRows> added;
    std::optional<FloatRows> rows;
    {
        std::future<void> storing = std::async(std::launch::async, [&] {
            added.emplace(storage, n, x);
            rows.emplace(storage, 0, n, x);
            links.make_room_for_all(n);
            graph = gnnd::KnnGraph(n, graph_k(), metric());
        });
        builder.build_on(*there, VectorSource({x, n, this->d, gnnd::DType::f32, 0}, metric()), graph_k());
        storing.get();
    }
    std::future<void> copying =
        std::async(std::launch::async, [&] { there->copy_graph(graph.ids(), graph.distances()); });
    choose_all(links, rows->flat(), graph, there);
    copying.get();
    keep(links, n, 0);
    graph_ = std::move(graph);
    added->keep();
    remember(storage);
    return true;
}

/// \param there  was given the vectors of graph_, or is empty
template <class FaissIndex>
GraphChange GnndIndex<FaissIndex>::append_on_gpu(gnnd::detail::DeviceGraph& there, const faiss::IndexFlat& rows,
                                                 idx_t old, bool measured) {
    constexpr idx_t kShare = 4;  // where more of the rows change, all are copied
    std::optional<Unmeasured> without;
    if (!measured) without.emplace(builder);
    gnnd::Resources& resources = gnnd::detail::or_heap(builder.resources());
    if (there.n() != old) there.load(view_rows(rows, 0, old, metric()).vectors(), graph_, resources);
    builder.append_on(there, view_rows(rows, old, rows.ntotal, metric()), graph_k());
    gnnd::detail::AppendedRows changed = there.changed(old / kShare, resources);
    if (changed.rows.n() > 0) return GraphChange(graph_, std::move(changed));
    gnnd::KnnGraph whole(rows.ntotal, graph_k(), metric());
    there.copy_graph(whole.ids(), whole.distances());
    return GraphChange(graph_, std::move(whole));
}

/// Whether the CPU may change the rows of the graph that little is added to, instead of making another.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::appends_rows(idx_t old, idx_t n) const {
    return old > graph_.k() && graph_.k() == graph_k() && n - old <= gnnd::detail::kMostAppended &&
           double(n - old) <= gnnd::kSearchedShare * double(old) && builder.resources() == nullptr &&
           gnnd::detail::choose(builder.params.device).kind == gnnd::Device::Kind::cpu;
}

template <class FaissIndex>
gnnd::KnnGraph GnndIndex<FaissIndex>::append_all(const faiss::IndexFlat& rows, idx_t old, bool measured) {
    std::optional<Unmeasured> without;
    if (!measured) without.emplace(builder);
    return builder.append(view_rows(rows, 0, old, metric()), graph_, view_rows(rows, old, rows.ntotal, metric()),
                          graph_k());
}

/// Chooses the links of all objects of a graph.
/// \param there  the same graph on a GPU; null: it is not there
template <class FaissIndex>
void GnndIndex<FaissIndex>::choose_all(LinkChange<GraphIndex>& links, const faiss::IndexFlat& rows,
                                       const gnnd::KnnGraph& graph, const gnnd::detail::DeviceGraph* there) {
    detail::LinkPlace place;
    if (builder.on_gpu) place = {builder.stats.device, builder.resources()};
    if (there != nullptr)
        links.choose_all(VectorSource(there->vectors(), metric()), rows, there->graph(), place);
    else
        links.choose_all(view_rows(rows, 0, rows.ntotal, metric()), rows, graph, place);
}

/// Those of graph_, which become the index's.
template <class FaissIndex>
void GnndIndex<FaissIndex>::link_all(const faiss::IndexFlat& rows, const gnnd::detail::DeviceGraph* there) {
    LinkChange links(static_cast<GraphIndex&>(*this), parents_);
    choose_all(links, rows, graph_, there);
    keep(links, rows.ntotal, 0);
}

/// What is thrown leaves all as it was; nothing may be thrown behind it.
template <class FaissIndex>
void GnndIndex<FaissIndex>::keep(LinkChange<GraphIndex>& links, idx_t n, std::int64_t chosen) {
    if (this->verbose)
        detail::print_line(detail::class_of(*this) + ": " + std::to_string(n) + " objects, links of " +
                           (chosen == 0 ? "all" : std::to_string(chosen - chosen_)) + " chosen");
    links.keep();
    chosen_ = chosen;
    unmeasured_ = 0;
    this->ntotal = n;
    fit_beam();
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::merge_from(faiss::Index& other, idx_t add_id) {
    if (add_id != 0)
        fail(detail::class_of(*this) + "::merge_from: add_id is " + std::to_string(add_id) +
             ", the index numbers its objects");
    merge_copy_of(other);
    other.reset();
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::merge_copy_of(const faiss::Index& other) {
    detail::with_faiss_errors([&] {
        const auto* from = dynamic_cast<const FaissIndex*>(&other);
        const std::string who = detail::class_of(*this) + "::merge_from: ";
        if (from == nullptr || from == this) fail(who + detail::class_of(other) + " is not another index of its kind");
        if (from->d != this->d || from->metric_type != this->metric_type)
            fail(who + "vectors of " + std::to_string(this->d) + " and of " + std::to_string(from->d) +
                 " components, or of two metrics");
        if (from->ntotal == 0) return;
        if (!this->is_trained) fail(who + "the index is not trained");
        faiss::IndexFlatCodes& storage = codes();
        const idx_t old = storage.ntotal;
        check_size(old + from->ntotal);
        prepare();
        on_gpu_.reset();
        const FloatRows taken(detail::codes_of(*from, from->storage));
        gnnd::KnnGraph graph = graph_of(*from, taken.flat());
        AddedRows added(storage, from->ntotal, taken.flat().get_xb());
        const FloatRows rows(storage, old, from->ntotal, taken.flat().get_xb());
        GraphChange change(graph_, old == 0 ? std::move(graph) : merge(rows.flat(), old, graph));
        link_all(rows.flat());
        change.keep();
        added.keep();
        remember(storage);
    });
}

template <class FaissIndex>
gnnd::KnnGraph GnndIndex<FaissIndex>::merge(const faiss::IndexFlat& rows, idx_t old, const gnnd::KnnGraph& graph) {
    std::optional<Unmeasured> unmeasured;
    if (detail::compresses(*this->storage)) unmeasured.emplace(builder);
    return builder.merge(view_rows(rows, 0, old, metric()), graph_, view_rows(rows, old, rows.ntotal, metric()), graph,
                         graph_k());
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
    chosen_ = unmeasured_ = 0;
    on_gpu_.reset();
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
