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
#include "faiss_ext/detail/grow_links.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/print.h"

namespace faiss_ext {

using detail::AddedRows;
using detail::fail;
using detail::FloatRows;
using detail::LinkTree;

namespace {

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

VectorSource view_rows(const faiss::IndexFlat& rows, idx_t begin, idx_t end, gnnd::Metric metric) {
    return {{rows.get_xb() + begin * rows.d, end - begin, rows.d, gnnd::DType::f32, 0}, metric};
}

/// A graph of one object. gnnd::build() needs two, and two that are equal are as good as one.
gnnd::KnnGraph graph_of_one(const float* x, int d, gnnd::Metric metric, int k, GnndGraphBuilder& builder) {
    std::vector<float> twice(x, x + d);
    twice.insert(twice.end(), x, x + d);
    builder.build(VectorSource({twice.data(), 2, d, gnnd::DType::f32, 0}, metric), 1);
    return {1, k, metric};
}

}  // namespace

/// A graph and links for all objects, in place of those that an index has.
template <class FaissIndex>
struct GnndIndex<FaissIndex>::Change {
    Change(GnndIndex& index, const faiss::IndexFlat& rows)
        : index(index), rows(rows), all(view_rows(rows, 0, rows.ntotal, index.metric())) {}

    /// Chooses the links of all.
    void link_all() {
        if (rows.ntotal == 1) {
            tree.degree = detail::degree_of(index);
            tree.links.assign(tree.degree, -1);
            tree.parents.assign(1, 0);
            return;
        }
        const GnndGraphBuilder& builder = index.builder;
        detail::LinkPlace place;
        if (builder.on_gpu) place = {builder.stats.device, builder.resources()};
        tree = detail::make_links(all, rows, graph, detail::degree_of(index), place);
        chosen = 0;
    }

    /// Chooses links where the objects behind the first `old` make a difference.
    void link_added(std::int64_t old) {
        if (old == 0 || std::int64_t(index.parents_.size()) != old) return link_all();
        // Of farther ones hardly any are linked. Measured: with 8, 16, 32 and 64 columns searches find as much.
        const int columns = std::max(detail::degree_of(index) / 2, 1);
        const std::vector<std::int32_t> changed = detail::changed_rows(index.graph_, graph, columns);
        const std::int64_t n = rows.ntotal;
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
        chosen = index.chosen_ + detail::grow_links(all, rows, graph, old, changed, tree);
    }

    /// From here on nothing fails but the first step, which leaves all as it was.
    void commit() {
        if (index.verbose)
            detail::print_line(detail::class_of(index) + ": " + std::to_string(rows.ntotal) + " objects, links of " +
                               (chosen == 0 ? "all" : std::to_string(chosen - index.chosen_)) + " chosen");
        detail::set_links(index, tree);
        index.graph_ = std::move(graph);
        index.parents_ = std::move(tree.parents);
        index.chosen_ = chosen;
        index.unmeasured_ = unmeasured;
        index.ntotal = rows.ntotal;
        index.fit_beam();
    }

    GnndIndex& index;
    const faiss::IndexFlat& rows;
    VectorSource all;
    gnnd::KnnGraph graph;
    LinkTree tree;
    std::int64_t chosen = 0, unmeasured = 0;
};

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
    chosen_ = other.chosen_;
    unmeasured_ = other.unmeasured_;
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
    if (this->ntotal == 0 || has_graph()) return;
    graph_ = graph_of(*this, FloatRows(codes()).flat());
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
        AddedRows added(storage, n, x);
        const FloatRows rows(storage, old, n, x);
        Change change(*this, rows.flat());
        if (old > 0)
            change.graph = append(rows.flat(), old, change);
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
template <class FaissIndex>
gnnd::KnnGraph GnndIndex<FaissIndex>::append(const faiss::IndexFlat& rows, idx_t old, Change& change) {
    constexpr idx_t kShare = 100;  // of the objects, after which it pays
    change.unmeasured = unmeasured_ + rows.ntotal - old;
    std::optional<Unmeasured> unmeasured;
    if (detail::compresses(*this->storage) || (change.unmeasured * kShare < old && builder.params.recall < 1))
        unmeasured.emplace(builder);
    else
        change.unmeasured = 0;
    return builder.append(view_rows(rows, 0, old, metric()), graph_, view_rows(rows, old, rows.ntotal, metric()),
                          graph_k());
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
        const FloatRows taken(detail::codes_of(*from, from->storage));
        gnnd::KnnGraph graph = graph_of(*from, taken.flat());
        AddedRows added(storage, from->ntotal, taken.flat().get_xb());
        const FloatRows rows(storage, old, from->ntotal, taken.flat().get_xb());
        Change change(*this, rows.flat());
        change.graph = old == 0 ? std::move(graph) : merge(rows.flat(), old, graph);
        change.link_all();
        change.commit();
        added.keep();
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
        const FloatRows all(storage);
        faiss::IndexFlat kept(this->d, this->metric_type);
        kept.codes.resize(std::size_t(count) * kept.code_size);
        kept.ntotal = count;
        gnnd::KnnGraph rest(count, graph_.k(), metric());
        for (idx_t i = 0; i < count; ++i) {
            std::copy_n(all.flat().get_xb() + std::int64_t(left[i]) * this->d, this->d, kept.get_xb() + i * this->d);
            std::int32_t* to = rest.ids() + i * rest.k();
            for (std::int64_t j = 0; j < rest.k(); ++j)
                if (const std::int32_t id = graph_.ids_of(left[i])[j]; id >= 0 && numbers[id] >= 0) *to++ = numbers[id];
        }
        Change change(*this, kept);
        change.graph = count == 1 ? std::move(rest) : builder.refine(change.all, rest, graph_k());
        change.link_all();
        change.commit();
        detail::keep_rows(storage, left);
        return std::size_t(n - count);
    });
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::reset() {
    FaissIndex::reset();
    graph_ = {};
    parents_.clear();
    chosen_ = unmeasured_ = 0;
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
