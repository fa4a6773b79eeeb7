// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/index_change.h"

#include <algorithm>
#include <utility>

#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/grow_links.h"

namespace faiss_ext::detail {

namespace {

constexpr std::int64_t kManyRows = 1024;  // of a graph; fewer are done before other threads are there

}  // namespace

/// gnnd::build() needs two, and two that are equal are as good as one.
gnnd::KnnGraph graph_of_one(const float* x, int d, gnnd::Metric metric, int k, GnndGraphBuilder& builder) {
    std::vector<float> twice(x, x + d);
    twice.insert(twice.end(), x, x + d);
    builder.build(VectorSource({twice.data(), 2, d, gnnd::DType::f32, 0}, metric), 1);
    return {1, k, metric};
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

GraphChange::GraphChange(gnnd::KnnGraph& graph, std::shared_ptr<gnnd::detail::AppendedRows> rows)
    : graph_(graph), old_(graph.n()), rows_(std::move(rows)) {
    const std::int64_t changed = std::int64_t(rows_->objects.size()), added = rows_->rows.n() - changed, k = graph.k();
    graph_.resize(old_ + added);
    swap_rows();
    std::copy_n(rows_->rows.ids() + changed * k, added * k, graph_.ids() + old_ * k);
    std::copy_n(rows_->rows.distances() + changed * k, added * k, graph_.distances() + old_ * k);
}

GraphChange::~GraphChange() {
    if (kept_) return;
    if (!rows_) {
        std::swap(graph_, whole_);
        return;
    }
    swap_rows();
    graph_.resize(old_);
}

/// Those of the graph and those beside it, of the objects that change.
void GraphChange::swap_rows() {
    const std::int64_t k = graph_.k();
    const auto count = std::int64_t(rows_->objects.size());
#pragma omp parallel for schedule(static) if (count > kManyRows)
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = rows_->objects[i] * k, here = i * k;
        std::swap_ranges(graph_.ids() + at, graph_.ids() + at + k, rows_->rows.ids() + here);
        std::swap_ranges(graph_.distances() + at, graph_.distances() + at + k, rows_->rows.distances() + here);
    }
}

std::vector<std::int32_t> GraphChange::changed(std::int64_t columns) const {
    if (!rows_) return changed_rows(whole_, graph_, columns);
    columns = std::min(columns, graph_.k());
    std::vector<std::int32_t> changed = rows_->objects;  // -1 for those that have not
    const auto count = std::int64_t(changed.size());
#pragma omp parallel for schedule(static) if (count > kManyRows)
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t* before = rows_->rows.ids_of(i);
        if (std::equal(before, before + columns, graph_.ids_of(changed[i]))) changed[i] = -1;
    }
    changed.erase(std::remove(changed.begin(), changed.end(), -1), changed.end());
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
    all_ = room_for_links(n, degree_of(index_));
}

template <class GraphIndex>
void LinkChange<GraphIndex>::choose_all(const VectorSource& source, const faiss::IndexFlat& rows,
                                        const gnnd::KnnGraphView& graph, const LinkPlace& place) {
    if (n_ != graph.n) make_room_for_all(graph.n);
    if (n_ > 1) return make_links(source, rows, graph, place, all_);
    std::fill(all_.links.begin(), all_.links.end(), -1);
    all_.parents[0] = 0;
}

template <class GraphIndex>
std::int64_t LinkChange<GraphIndex>::choose_added(const faiss::IndexFlat& rows, const gnnd::KnnGraphView& graph,
                                                  const std::optional<PrunedRows>& on_gpu,
                                                  const std::vector<std::int32_t>& changed) {
    n_ = graph.n;
    old_ = std::int64_t(parents_.size());
    parents_.resize(n_, -1);
    try {
        grown_.emplace(make_room(index_, n_), degree_of(index_), entry_of(index_), parents_);
    } catch (...) {
        parents_.resize(old_);
        throw;
    }
    return grow_links(rows, graph, on_gpu, old_, changed, *grown_, missed_);
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
