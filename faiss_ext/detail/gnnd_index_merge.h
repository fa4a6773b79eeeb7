// SPDX-License-Identifier: MIT
#pragma once
/// \file gnnd_index_merge.h
/// GnndIndex's merges, on the CPU or on a GPU. Included by gnnd_index.cpp, which instantiates it.

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/index_change.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/index_sample.h"
#include "faiss_ext/gnnd_index.h"

namespace faiss_ext {

template <class FaissIndex>
void GnndIndex<FaissIndex>::merge_from(faiss::Index& other, idx_t add_id) {
    if (add_id != 0)
        detail::fail(detail::class_of(*this) + "::merge_from: add_id is " + std::to_string(add_id) +
                     ", the index numbers its objects");
    merge_copy_of(other);
    other.reset();
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::check_compatible_for_merge(const faiss::Index& other) const {
    if (&other == this) detail::fail(detail::class_of(*this) + "::merge_from: the index is not another of its kind");
    check_alike(other);
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::check_alike(const faiss::Index& other) const {
    const auto* from = dynamic_cast<const FaissIndex*>(&other);
    const std::string who = detail::class_of(*this) + "::merge_from: ";
    if (from == nullptr) detail::fail(who + detail::class_of(other) + " is not another index of its kind");
    if (from->d != this->d || from->metric_type != this->metric_type)
        detail::fail(who + "vectors of " + std::to_string(this->d) + " and of " + std::to_string(from->d) +
                     " components, or of two metrics");
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::merge_copy_of(const faiss::Index& other) {
    detail::with_faiss_errors([&] {
        check_compatible_for_merge(other);
        merge_of(*this, other);
    });
}

template <class FaissIndex>
std::unique_ptr<faiss::Index> GnndIndex<FaissIndex>::merged_with(const faiss::Index& other) const {
    return detail::with_faiss_errors([&] {
        check_alike(other);
        if (other.ntotal == 0) return copy();
        std::unique_ptr<faiss::Index> both = empty_copy();
        if (typeid(*both) == typeid(*this)) {
            dynamic_cast<GnndIndex&>(*both).merge_of(*this, other);
            return both;
        }
        // A class derived from ours that has copies of its own only.
        both = copy();
        const std::unique_ptr<faiss::Index> again = &other == this ? copy() : nullptr;
        dynamic_cast<WithGnnd&>(*both).merge_copy_of(again ? *again : other);
        return both;
    });
}

template <class FaissIndex>
struct GnndIndex<FaissIndex>::Union {
    Union(GnndIndex& to, const GnndIndex& first, const FaissIndex& second)
        : first(first),
          second(second),
          codes1(first.codes()),
          codes2(detail::codes_of(second, second.storage)),
          rows2(codes2),
          graph1(to.graph_of(first, codes1)),
          graph2(to.graph_of(second, codes2)),
          former(parents_of_both()) {}

    idx_t n1() const { return first.ntotal; }
    idx_t n2() const { return second.ntotal; }
    idx_t n() const { return n1() + n2(); }
    const float* x2() const { return rows2.flat().get_xb(); }

    const GnndIndex& first;
    const FaissIndex& second;
    const faiss::IndexFlatCodes &codes1, &codes2;
    const detail::FloatRows rows2;
    const GraphOf graph1, graph2;
    /// Of each object of both, its number in their union, through whom it is reached, where that is known.
    const std::vector<std::int32_t> former;

  private:
    std::vector<std::int32_t> parents_of_both() const {
        std::vector<std::int32_t> parents(n(), -1);
        const auto put_in = [&](const FaissIndex& index, const faiss::IndexFlatCodes& storage, idx_t from) {
            const auto* made_here = dynamic_cast<const GnndIndex*>(&index);
            if (made_here == nullptr || !made_here->has_parents(detail::sample_of(index, storage))) return;
            std::transform(made_here->parents_.begin(), made_here->parents_.end(), parents.begin() + from,
                           [&](std::int32_t parent) { return std::int32_t(from + parent); });
        };
        put_in(first, codes1, 0);
        put_in(second, codes2, n1());
        return parents;
    }
};

template <class FaissIndex>
void GnndIndex<FaissIndex>::merge_of(const GnndIndex& first, const faiss::Index& second) {
    const auto& other = dynamic_cast<const FaissIndex&>(second);
    if (other.ntotal == 0) return;
    if (!first.is_trained) detail::fail(detail::class_of(*this) + "::merge_from: the index is not trained");
    check_size(first.ntotal + other.ntotal);
    builder.verbose = this->verbose;
    on_gpu_.reset();
    const Union both(*this, first, other);
    // What a merge misses lies between both sets, so the columns count that links are chosen from.
    const detail::HeldToColumns held(builder, std::min(detail::degree_of(*this), graph_k()));
    if (!merge_on_gpu(both)) merge_on_host(both);
    remember(codes());
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::merge_on_host(const Union& both) {
    std::optional<detail::Unmeasured> unmeasured;
    if (detail::compresses(*this->storage)) unmeasured.emplace(builder);
    faiss::IndexFlatCodes& storage = codes();
    // Rows of its own are not copied, but for room.
    std::optional<detail::AddedRows> added;
    std::optional<detail::JoinedRows> joined;
    if (&both.first == this)
        added.emplace(storage, both.n2(), both.x2());
    else
        joined.emplace(storage, both.codes1, both.n2(), both.x2());
    const detail::FloatRows rows(storage, both.n1(), both.n2(), both.x2());
    const auto merged = [&] {
        return builder.merge(detail::view_rows(rows.flat(), 0, both.n1(), metric()), both.graph1.view,
                             detail::view_rows(rows.flat(), both.n1(), both.n(), metric()), both.graph2.view,
                             graph_k());
    };
    detail::GraphChange graph(graph_, both.n1() == 0 ? detail::copy_graph(both.graph2.view) : merged());
    unmeasured.reset();
    link_all(rows.flat(), nullptr, both.former);
    graph.keep();
    if (added) added->keep();
    if (joined) joined->keep();
}

/// The vectors go to a GPU, where their graph and links are made, while the host joins them and takes memory for the
/// rest.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::merge_on_gpu(const Union& both) {
    if (both.n1() == 0 || detail::compresses(*this->storage)) return false;
    gnnd::detail::DeviceGraph* const there = place_on_gpu(both.n());
    if (there == nullptr) return false;
    const detail::OnGpu not_kept(on_gpu_);
    faiss::IndexFlatCodes& storage = codes();
    const detail::FloatRows rows1(both.codes1);
    const VectorSource x1 = detail::view_rows(rows1.flat(), 0, both.n1(), metric()),
                       x2 = detail::view_rows(both.rows2.flat(), 0, both.n2(), metric());
    detail::LinkChange links(static_cast<GraphIndex&>(*this), parents_, missed_);
    gnnd::KnnGraph graph;
    std::optional<detail::JoinedRows> joined;
    {
        std::future<void> joining =
            std::async(std::launch::async, [&] { joined.emplace(storage, both.codes1, both.n2(), both.x2()); });
        std::future<void> taking = std::async(std::launch::async, [&] {
            links.make_room_for_all(both.n());
            graph = detail::graph_that_grows(both.n(), graph_k(), metric());
        });
        builder.merge_on(*there, x1, both.graph1.view, x2, both.graph2.view, graph_k());
        joining.get();
        taking.get();
    }
    std::future<void> copying =
        std::async(std::launch::async, [&] { there->copy_graph(graph.ids(), graph.distances()); });
    const detail::FloatRows rows(storage);
    choose_all(links, rows.flat(), graph, there, both.former, std::move(copying));
    keep(links, both.n(), 0);
    graph_ = std::move(graph);
    joined->keep();
    return true;
}

}  // namespace faiss_ext
