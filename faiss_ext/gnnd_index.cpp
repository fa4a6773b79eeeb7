// SPDX-License-Identifier: MIT
#include "faiss_ext/gnnd_index.h"

#include <faiss/clone_index.h>
#include <faiss/impl/IDSelector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/grow_links.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/rows.h"
#include "gnnd/detail/checks.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

using detail::fail;
using detail::LinkTree;

namespace {

/// Rows of a storage that are there for the time of a change, unless it is kept.
class AddedRows {
  public:
    AddedRows(faiss::IndexFlat& storage, idx_t n, const float* x) : storage_(storage), before_(storage.ntotal) {
        const std::size_t bytes = storage.code_size;
        storage.codes.resize(std::size_t(before_ + n) * bytes);
        std::memcpy(storage.codes.data() + std::size_t(before_) * bytes, x, std::size_t(n) * bytes);
        storage.ntotal = before_ + n;
    }
    AddedRows(const AddedRows&) = delete;
    AddedRows& operator=(const AddedRows&) = delete;
    ~AddedRows() {
        if (kept_) return;
        storage_.codes.resize(std::size_t(before_) * storage_.code_size);
        storage_.ntotal = before_;
    }
    void keep() { kept_ = true; }

  private:
    faiss::IndexFlat& storage_;
    idx_t before_;
    bool kept_ = false;
};

/// An index's storage as plain rows of floats.
faiss::IndexFlat& rows_of(const faiss::Index& index, faiss::Index* storage) {
    auto* rows = dynamic_cast<faiss::IndexFlat*>(storage);
    if (rows == nullptr || !detail::holds_plain_rows(*rows))
        fail(detail::class_of(index) + " does not keep its vectors as a faiss::IndexFlat");
    if (rows->ntotal != index.ntotal || rows->d != index.d) fail(detail::class_of(index) + " does not fit its storage");
    return *rows;
}

/// A builder measures no recall in the meantime.
class Unmeasured {
  public:
    explicit Unmeasured(GnndGraphBuilder& builder) : builder_(builder), asked_(builder.params.recall) {
        builder.params.recall = 0;
    }
    Unmeasured(const Unmeasured&) = delete;
    Unmeasured& operator=(const Unmeasured&) = delete;
    ~Unmeasured() { builder_.params.recall = asked_; }

  private:
    GnndGraphBuilder& builder_;
    float asked_;
};

VectorSource view_rows(const faiss::IndexFlat& storage, idx_t begin, idx_t end, gnnd::Metric metric) {
    return {{storage.get_xb() + begin * storage.d, end - begin, storage.d, gnnd::DType::f32, 0}, metric};
}

/// A graph of one object. gnnd::build() needs two, and two that are equal are as good as one.
gnnd::KnnGraph graph_of_one(const float* x, int d, gnnd::Metric metric, int k, GnndGraphBuilder& builder) {
    std::vector<float> twice(x, x + d);
    twice.insert(twice.end(), x, x + d);
    builder.build(VectorSource({twice.data(), 2, d, gnnd::DType::f32, 0}, metric), 1);
    return {1, k, metric};
}

}  // namespace

/// A graph and links for all objects of the storage, in place of those that an index has.
template <class FlatIndex>
struct GnndIndex<FlatIndex>::Change {
    Change(GnndIndex& index, const faiss::IndexFlat& storage)
        : index(index), storage(storage), all(view_rows(storage, 0, storage.ntotal, index.metric())) {}

    /// Chooses the links of all.
    void link_all() {
        if (storage.ntotal == 1) {
            tree.degree = detail::degree_of(index);
            tree.links.assign(tree.degree, -1);
            tree.parents.assign(1, 0);
            return;
        }
        const GnndGraphBuilder& builder = index.builder;
        detail::LinkPlace place;
        if (builder.on_gpu) place = {builder.stats.device, builder.resources()};
        tree = detail::make_links(all, storage, graph, detail::degree_of(index), place);
        chosen = 0;
    }

    /// Chooses links where the objects behind the first `old` make a difference.
    void link_added(std::int64_t old) {
        if (old == 0 || std::int64_t(index.parents_.size()) != old) return link_all();
        // Of farther ones hardly any are linked. Measured: with 8, 16, 32 and 64 columns searches find as much.
        const int columns = std::max(detail::degree_of(index) / 2, 1);
        const std::vector<std::int32_t> changed = detail::changed_rows(index.graph_, graph, columns);
        const std::int64_t n = storage.ntotal;
        if (index.chosen_ + std::int64_t(changed.size()) + n - old > n) return link_all();
        tree.degree = detail::degree_of(index);
        tree.entry = detail::entry_of(index);
        tree.links.reserve(std::size_t(n) * tree.degree);
        for (std::int64_t i = 0; i < old; ++i) {
            const std::int32_t* links = detail::links_of(index, i);
            tree.links.insert(tree.links.end(), links, links + tree.degree);
        }
        tree.links.resize(std::size_t(n) * tree.degree, -1);
        tree.parents = index.parents_;
        tree.parents.resize(n, -1);
        chosen = index.chosen_ + detail::grow_links(all, storage, graph, old, changed, tree);
    }

    /// From here on nothing fails but the first step, which leaves all as it was.
    void commit() {
        if (index.verbose)
            detail::print_line(detail::class_of(index) + ": " + std::to_string(storage.ntotal) + " objects, links of " +
                               (chosen == 0 ? "all" : std::to_string(chosen - index.chosen_)) + " chosen");
        detail::set_links(index, tree);
        index.graph_ = std::move(graph);
        index.parents_ = std::move(tree.parents);
        index.chosen_ = chosen;
        index.unmeasured_ = unmeasured;
        index.ntotal = storage.ntotal;
        index.fit_beam();
    }

    GnndIndex& index;
    const faiss::IndexFlat& storage;
    VectorSource all;
    gnnd::KnnGraph graph;
    LinkTree tree;
    std::int64_t chosen = 0, unmeasured = 0;
};

template <class FlatIndex>
GnndIndex<FlatIndex>::GnndIndex(int d, int links, faiss::MetricType metric) : FlatIndex(d, links, metric) {
    detail::with_faiss_errors([&] {
        gnnd::detail::check_range("GnndIndex", "d", d, 1, int(gnnd::kMaxDim));
        this->metric();
    });
}

/// The vectors and links are those of another index so far.
template <class FlatIndex>
void GnndIndex<FlatIndex>::own_copies() {
    this->own_fields = false;
    detail::with_faiss_errors([&] {
        rows();
        metric();
        if constexpr (std::is_base_of_v<faiss::IndexNSG, FlatIndex>)
            if (auto& graph = this->nsg.final_graph) graph = std::make_shared<faiss::nsg::Graph<int>>(*graph);
        this->storage = faiss::clone_index(this->storage);
    });
    this->own_fields = true;
}

template <class FlatIndex>
GnndIndex<FlatIndex>::GnndIndex(FlatIndex&& index) : FlatIndex(index) {
    const bool owned = std::exchange(this->own_fields, false);
    rows();
    metric();
    this->own_fields = owned;
    index.own_fields = false;
    index.storage = nullptr;
    index.ntotal = 0;
}

template <class FlatIndex>
GnndIndex<FlatIndex>::GnndIndex(const FlatIndex& index) : FlatIndex(index) {
    own_copies();
}

template <class FlatIndex>
GnndIndex<FlatIndex>::GnndIndex(const GnndIndex& other) : GnndIndex(static_cast<const FlatIndex&>(other)) {
    builder = other.builder;
    graph_ = other.graph_;
    parents_ = other.parents_;
    chosen_ = other.chosen_;
    unmeasured_ = other.unmeasured_;
}

template <class FlatIndex>
gnnd::Metric GnndIndex<FlatIndex>::metric() const {
    return to_gnnd_metric(this->metric_type);
}

template <class FlatIndex>
faiss::IndexFlat& GnndIndex<FlatIndex>::rows() const {
    return rows_of(*this, this->storage);
}

template <class FlatIndex>
gnnd::KnnGraph GnndIndex<FlatIndex>::graph_of(const FlatIndex& index) {
    if (const auto* made_here = dynamic_cast<const GnndIndex*>(&index); made_here != nullptr && made_here->has_graph())
        return made_here->graph_;
    const faiss::IndexFlat& storage = rows_of(index, index.storage);
    const int degree = detail::degree_of(index);
    gnnd::KnnGraph links(index.ntotal, degree, metric());
    if (index.ntotal < 2) return links;
    detail::require_links(index);
    for (std::int64_t i = 0; i < index.ntotal; ++i)
        std::copy_n(detail::links_of(index, i), degree, links.ids() + i * degree);
    return builder.refine(view_rows(storage, 0, storage.ntotal, metric()), links, graph_k());
}

template <class FlatIndex>
void GnndIndex<FlatIndex>::prepare() {
    builder.verbose = this->verbose;
    if (this->ntotal == 0 || has_graph()) return;
    graph_ = graph_of(*this);
    parents_.clear();  // those of other links
}

template <class FlatIndex>
void GnndIndex<FlatIndex>::add(idx_t n, const float* x) {
    detail::with_faiss_errors([&] {
        if (n == 0) return;
        faiss::IndexFlat& storage = rows();
        const idx_t old = storage.ntotal;
        check_size(old + n);
        prepare();
        AddedRows added(storage, n, x);
        Change change(*this, storage);
        if (old > 0)
            change.graph = append(storage, old, change);
        else if (n > 1)
            change.graph = builder.build(change.all, graph_k());
        else
            change.graph = graph_of_one(x, this->d, metric(), graph_k(), builder);
        change.link_added(old);
        change.commit();
        added.keep();
    });
}

/// To measure the recall of a whole graph takes longer than to add a few objects.
template <class FlatIndex>
gnnd::KnnGraph GnndIndex<FlatIndex>::append(const faiss::IndexFlat& storage, idx_t old, Change& change) {
    constexpr idx_t kShare = 100;  // of the objects, after which it pays
    change.unmeasured = unmeasured_ + storage.ntotal - old;
    std::optional<Unmeasured> unmeasured;
    if (change.unmeasured * kShare < old && builder.params.recall < 1)
        unmeasured.emplace(builder);
    else
        change.unmeasured = 0;
    return builder.append(view_rows(storage, 0, old, metric()), graph_,
                          view_rows(storage, old, storage.ntotal, metric()), graph_k());
}

template <class FlatIndex>
void GnndIndex<FlatIndex>::merge_from(faiss::Index& other, idx_t add_id) {
    if (add_id != 0)
        fail(detail::class_of(*this) + "::merge_from: add_id is " + std::to_string(add_id) +
             ", the index numbers its objects");
    merge_copy_of(other);
    other.reset();
}

template <class FlatIndex>
void GnndIndex<FlatIndex>::merge_copy_of(const faiss::Index& other) {
    detail::with_faiss_errors([&] {
        const auto* from = dynamic_cast<const FlatIndex*>(&other);
        const std::string who = detail::class_of(*this) + "::merge_from: ";
        if (from == nullptr || from == this) fail(who + detail::class_of(other) + " is not another index of its kind");
        if (from->d != this->d || from->metric_type != this->metric_type)
            fail(who + "vectors of " + std::to_string(this->d) + " and of " + std::to_string(from->d) +
                 " components, or of two metrics");
        if (from->ntotal == 0) return;
        faiss::IndexFlat& storage = rows();
        const idx_t old = storage.ntotal;
        check_size(old + from->ntotal);
        prepare();
        gnnd::KnnGraph graph = graph_of(*from);
        AddedRows added(storage, from->ntotal, rows_of(*from, from->storage).get_xb());
        Change change(*this, storage);
        change.graph = old == 0 ? std::move(graph)
                                : builder.merge(view_rows(storage, 0, old, metric()), graph_,
                                                view_rows(storage, old, storage.ntotal, metric()), graph, graph_k());
        change.link_all();
        change.commit();
        added.keep();
    });
}

template <class FlatIndex>
std::size_t GnndIndex<FlatIndex>::remove_ids(const faiss::IDSelector& selector) {
    return detail::with_faiss_errors([&]() -> std::size_t {
        faiss::IndexFlat& storage = rows();
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
        faiss::IndexFlat kept(this->d, this->metric_type);
        kept.codes.resize(std::size_t(count) * kept.code_size);
        kept.ntotal = count;
        gnnd::KnnGraph rest(count, graph_.k(), metric());
        for (idx_t i = 0; i < count; ++i) {
            std::copy_n(storage.get_xb() + std::int64_t(left[i]) * this->d, this->d, kept.get_xb() + i * this->d);
            std::int32_t* to = rest.ids() + i * rest.k();
            for (std::int64_t j = 0; j < rest.k(); ++j)
                if (const std::int32_t id = graph_.ids_of(left[i])[j]; id >= 0 && numbers[id] >= 0) *to++ = numbers[id];
        }
        Change change(*this, kept);
        change.graph = count == 1 ? std::move(rest) : builder.refine(change.all, rest, graph_k());
        change.link_all();
        change.commit();
        std::swap(storage.codes, kept.codes);
        storage.ntotal = count;
        return std::size_t(n - count);
    });
}

template <class FlatIndex>
void GnndIndex<FlatIndex>::reset() {
    FlatIndex::reset();
    graph_ = {};
    parents_.clear();
    chosen_ = unmeasured_ = 0;
}

template <class FlatIndex>
void GnndIndex<FlatIndex>::check_size(idx_t n) const {
    if constexpr (std::is_base_of_v<faiss::IndexNSG, FlatIndex>)
        detail::check_links(detail::class_of(*this).c_str(), n, detail::degree_of(*this));
}

template class GnndIndex<faiss::IndexNSGFlat>;
template class GnndIndex<faiss::IndexHNSWFlat>;

namespace {

int check_links_wanted(const char* who, const char* name, int links, int least, int most) {
    detail::with_faiss_errors([&] { gnnd::detail::check_range(who, name, links, least, most); });
    return links;
}

}  // namespace

IndexNSGGnnd::IndexNSGGnnd(int d, int R, faiss::MetricType metric)
    : GnndIndex(d, check_links_wanted("IndexNSGGnnd", "R", R, 1, gnnd::kMaxDegree), metric) {}

void IndexNSGGnnd::search(idx_t n, const float* x, idx_t k, float* distances, idx_t* labels,
                          const faiss::SearchParameters* params) const {
    if (ntotal > std::max<idx_t>(nsg.search_L, k) || params != nullptr)
        return IndexNSGFlat::search(n, x, k, distances, labels, params);
    if (ntotal > 0) return storage->search(n, x, k, distances, labels);
    std::fill_n(labels, n * k, -1);
    detail::with_faiss_errors([&] { std::fill_n(distances, n * k, gnnd::worst_value(to_gnnd_metric(metric_type))); });
}

/// FAISS, which may read the index from a file, never ends to search with a beam wider than there are objects.
void IndexNSGGnnd::fit_beam() {
    if (nsg.search_L == lowered_) nsg.search_L = beam_;
    lowered_ = 0;
    if (nsg.search_L <= ntotal) return;
    beam_ = nsg.search_L;
    nsg.search_L = lowered_ = int(ntotal);
}

IndexHNSWGnnd::IndexHNSWGnnd(int d, int M, faiss::MetricType metric)
    : GnndIndex(d, check_links_wanted("IndexHNSWGnnd", "M", M, 2, gnnd::kMaxDegree / 2), metric) {}

}  // namespace faiss_ext
