// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/index_change.h"

#include <algorithm>
#include <utility>

#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/grow_links.h"
#include "faiss_ext/detail/pages.h"
#include "gnnd/cpu/copy.h"

namespace faiss_ext::detail {

namespace {

/// f(c, object) for each old object whose row changes, by all threads where these are many; f does not throw.
template <class F>
void for_each_row(const gnnd::detail::AppendedRows& rows, const F& f) {
    constexpr std::int64_t kMany = 1024;  // fewer are done before other threads are there
    const auto count = std::int64_t(rows.objects.size());
#pragma omp parallel for schedule(static) if (count > kMany)
    for (std::int64_t c = 0; c < count; ++c) f(std::size_t(c), rows.objects[c]);
}

}  // namespace

/// gnnd::build() needs two, and two that are equal are as good as one.
gnnd::KnnGraph graph_of_one(const float* x, int d, gnnd::Metric metric, int k, GnndGraphBuilder& builder) {
    std::vector<float> twice(x, x + d);
    twice.insert(twice.end(), x, x + d);
    builder.build(VectorSource({twice.data(), 2, d, gnnd::DType::f32, 0}, metric), 1);
    return {1, k, metric};
}

gnnd::KnnGraph graph_that_grows(std::int64_t n, int k, gnnd::Metric metric) {
    gnnd::KnnGraph graph(0, k, metric);
    gnnd::cpu::take_room(graph, gnnd::cpu::with_room(n));
    graph.resize(n);
    return graph;
}

gnnd::KnnGraph copy_graph(const gnnd::KnnGraphView& graph) {
    gnnd::KnnGraph copy(graph.n, graph.k, graph.metric);
    std::copy_n(graph.ids, graph.n * graph.k, copy.ids());
    std::copy_n(graph.distances, graph.n * graph.k, copy.distances());
    return copy;
}

gnnd::KnnGraph graph_of_some(const gnnd::KnnGraphView& graph, const std::vector<std::int32_t>& objects,
                             const std::vector<std::int32_t>& numbers) {
    gnnd::KnnGraph rest(std::int64_t(objects.size()), graph.k, graph.metric);
    for (std::int64_t i = 0; i < rest.n(); ++i) {
        const std::int32_t* row = graph.ids_of(objects[i]);
        std::int32_t* to = rest.ids() + i * rest.k();
        for (std::int64_t j = 0; j < graph.k; ++j)
            if (row[j] >= 0 && numbers[row[j]] >= 0) *to++ = numbers[row[j]];
    }
    return rest;
}

GraphChange::GraphChange(gnnd::KnnGraph& graph, gnnd::KnnGraph whole)
    : graph_(graph), whole_(std::move(whole)), old_(graph.n()) {
    std::swap(graph_, whole_);
}

GraphChange::GraphChange(gnnd::KnnGraph& graph, gnnd::detail::AppendedRows rows)
    : graph_(graph), old_(graph.n()), rows_(std::move(rows)) {}

void GraphChange::put_in() {
    if (!rows_) return;
    const std::int64_t added = rows_->added.n(), k = graph_.k();
    graph_.resize(old_ + added);
    put_in_ = true;
    for_each_row(*rows_, [&](std::size_t c, std::int64_t object) {
        rows_->put_in(c, graph_.ids() + object * k, graph_.distances() + object * k, k);
    });
    std::copy_n(rows_->added.ids(), added * k, graph_.ids() + old_ * k);
    std::copy_n(rows_->added.distances(), added * k, graph_.distances() + old_ * k);
}

GraphChange::~GraphChange() {
    if (kept_) return;
    if (!rows_) {
        std::swap(graph_, whole_);
        return;
    }
    if (!put_in_) return;
    const std::int64_t k = graph_.k();
    for_each_row(*rows_, [&](std::size_t c, std::int64_t object) {
        rows_->take_out(c, graph_.ids() + object * k, graph_.distances() + object * k, k);
    });
    graph_.resize(old_);
}

std::vector<std::int32_t> GraphChange::changed(std::int64_t columns) const {
    if (!rows_) return changed_rows(whole_, graph_, columns);
    columns = std::min(columns, graph_.k());
    std::vector<std::int32_t> changed(rows_->objects.size());
    std::size_t count = 0;
    for (std::size_t c = 0; c < changed.size(); ++c) {
        const std::int32_t object = changed[count] = rows_->objects[c];
        const gnnd::detail::RowEntry *entries = rows_->entries.data() + rows_->begin_of(c), *before = entries;
        const bool whole = rows_->ends[c] - rows_->begin_of(c) == graph_.k();  // else of added objects
        const bool same = whole ? std::all_of(graph_.ids_of(object), graph_.ids_of(object) + columns,
                                              [&](std::int32_t id) { return id == (before++)->id; })
                                : entries->column >= columns;
        count += std::size_t(!same);
    }
    changed.resize(count);
    return changed;
}

template <class GraphIndex>
LinkChange<GraphIndex>::~LinkChange() {
    if (!grown_) return;
    grown_->undo();
    parents_.resize(old_);
    set_count(index_, old_);
}

template <class GraphIndex>
void LinkChange<GraphIndex>::make_room_for_all(std::int64_t n) {
    n_ = n;
    all_ = room_for_links(n, degree_of(index_), upper_degree_for(index_, n), gnnd::cpu::with_room(n));
}

template <class GraphIndex>
void LinkChange<GraphIndex>::choose_all(const VectorSource& source, const faiss::IndexFlat& rows,
                                        const gnnd::KnnGraphView& graph, const LinkPlace& place,
                                        const std::vector<std::int32_t>& former) {
    if (n_ != graph.n) make_room_for_all(graph.n);
    if (n_ > 1) return make_links(source, rows, graph, place, all_, former);
    std::fill(all_.links.begin(), all_.links.end(), -1);
    all_.levels.clear();
    all_.parents[0] = 0;
}

template <class GraphIndex>
std::int64_t LinkChange<GraphIndex>::choose_added(const faiss::IndexFlat& rows, const gnnd::KnnGraphView& graph,
                                                  std::future<gnnd::detail::PrunedObjects> pruned,
                                                  const std::vector<std::int32_t>& changed) {
    n_ = graph.n;
    old_ = std::int64_t(parents_.size());
    grow_with_pages(parents_, std::size_t(n_));
    std::fill(parents_.begin() + old_, parents_.end(), -1);
    try {
        std::int32_t* const links = make_room(index_, n_);
        grown_.emplace(links, layout_of(index_), entry_of(index_), parents_);
    } catch (...) {
        parents_.resize(old_);
        throw;
    }
    if (!pruned.valid()) return grow_links(rows, graph, nullptr, old_, changed, *grown_, missed_);
    const gnnd::detail::PrunedObjects there = pruned.get();
    return grow_links(rows, graph, &there, old_, changed, *grown_, missed_);
}

template <class GraphIndex>
void LinkChange<GraphIndex>::keep() {
    if (grown_) {
        set_count(index_, n_);
        grown_.reset();
        return;
    }
    set_links(index_, std::move(all_));
    parents_ = std::move(all_.parents);
    missed_ = all_.missed;
}

template class LinkChange<faiss::IndexNSG>;
template class LinkChange<faiss::IndexHNSW>;

}  // namespace faiss_ext::detail
