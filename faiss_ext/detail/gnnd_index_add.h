// SPDX-License-Identifier: MIT
#pragma once
/// \file gnnd_index_add.h
/// GnndIndex::add(): the first build and what is appended, on the CPU or on a GPU. Included by gnnd_index.cpp, which
/// instantiates it.

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/grow_links.h"
#include "faiss_ext/detail/index_change.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/gnnd_index.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/merge.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

template <class FaissIndex>
void GnndIndex<FaissIndex>::add(idx_t n, const float* x) {
    detail::with_faiss_errors([&] {
        if (!this->is_trained) detail::fail(detail::class_of(*this) + "::add: the index is not trained");
        if (n == 0) return;
        faiss::IndexFlatCodes& storage = codes();
        const idx_t old = storage.ntotal;
        check_size(old + n);
        prepare();
        if (old == 0 && build_on_gpu(n, x)) return;
        detail::AddedRows added(storage, n, x);
        const detail::FloatRows rows(storage, old, n, x);
        if (old > 0) {
            append(rows.flat(), old);
        } else {
            detail::GraphChange graph(
                graph_, n == 1 ? detail::graph_of_one(x, this->d, metric(), graph_k(), builder)
                               : builder.build(detail::view_rows(rows.flat(), 0, n, metric()), graph_k()));
            link_all(rows.flat());
            graph.keep();
        }
        added.keep();
        remember(storage);
    });
}

template <class FaissIndex>
void GnndIndex<FaissIndex>::append(const faiss::IndexFlat& rows, idx_t old) {
    constexpr idx_t kShare = 100;     // of the objects: to measure the recall takes longer than to add a few
    constexpr idx_t kFewPruned = 16;  // rows for each thread, which take less time than what a GPU does for any
    idx_t unmeasured = unmeasured_ + rows.ntotal - old;
    const bool measured =
        !detail::compresses(*this->storage) && (builder.params.recall == 1 || unmeasured * kShare >= old);
    if (measured) unmeasured = 0;
    const VectorSource all = detail::view_rows(rows, 0, rows.ntotal, metric());
    const bool grows = !detail::compresses(*this->storage) && old > graph_.k() && graph_.k() == graph_k();
    gnnd::detail::DeviceGraph* const there = grows ? place_on_gpu(rows.ntotal) : nullptr;
    detail::OnGpu on_gpu(on_gpu_);
    detail::GraphChange graph = there != nullptr ? append_on_gpu(*there, rows, old, measured)
                                : !measured && appends_rows(old, rows.ntotal)
                                    ? detail::GraphChange(graph_, builder.append_rows(all, graph_))
                                    : detail::GraphChange(graph_, append_all(rows, old, measured));
    // Of farther ones hardly any are linked. Measured: with 8, 16, 32 and 64 columns searches find as much.
    const std::vector<std::int32_t> changed = graph.changed(std::max(detail::degree_of(*this) / 2, 1));
    const idx_t concerned = idx_t(changed.size()) + rows.ntotal - old;
    const bool of_all = idx_t(parents_.size()) != old || links_all(rows.ntotal, concerned);
    std::future<gnnd::detail::PrunedObjects> pruned;
    if (!of_all && there != nullptr && concerned > kFewPruned * gnnd::cpu::Team::resolve(0))
        pruned = std::async(std::launch::async, [&] {
            return there->prune_around(changed, detail::degree_of(*this), gnnd::detail::or_heap(builder.resources()));
        });
    graph.put_in();
    if (of_all) {
        link_all(rows, there);
    } else {
        detail::LinkChange links(static_cast<GraphIndex&>(*this), parents_, missed_);
        keep(links, rows.ntotal, links.choose_added(rows, graph_, std::move(pruned), changed));
    }
    graph.keep();
    if (there != nullptr) on_gpu.keep();
    unmeasured_ = unmeasured;
}

/// The graph that is kept on the GPU where the builder runs, of any number of objects, with room for n; null where that
/// is the CPU, or where the GPU is not to hold it.
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
    detail::LinkChange links(static_cast<GraphIndex&>(*this), parents_, missed_);
    gnnd::KnnGraph graph;
    std::optional<detail::AddedRows> added;
    std::optional<detail::FloatRows> rows;
    {
        std::future<void> storing = std::async(std::launch::async, [&] {
            added.emplace(storage, n, x);
            rows.emplace(storage, 0, n, x);
        });
        std::future<void> taking = std::async(std::launch::async, [&] {
            links.make_room_for_all(n);
            graph = detail::graph_that_grows(n, graph_k(), metric());
        });
        builder.build_on(*there, VectorSource({x, n, this->d, gnnd::DType::f32, 0}, metric()), graph_k());
        storing.get();
        taking.get();
    }
    std::future<void> copying =
        std::async(std::launch::async, [&] { there->copy_graph(graph.ids(), graph.distances()); });
    choose_all(links, rows->flat(), graph, there, {}, std::move(copying));
    keep(links, n, 0);
    graph_ = std::move(graph);
    added->keep();
    remember(storage);
    return true;
}

/// \param there  was given the vectors of graph_, or is empty
template <class FaissIndex>
detail::GraphChange GnndIndex<FaissIndex>::append_on_gpu(gnnd::detail::DeviceGraph& there, const faiss::IndexFlat& rows,
                                                         idx_t old, bool measured) {
    constexpr idx_t kShare = 4;  // where more of the rows change, all are copied
    std::optional<detail::Unmeasured> without;
    if (!measured) without.emplace(builder);
    gnnd::Resources& resources = gnnd::detail::or_heap(builder.resources());
    if (there.n() != old) there.load(detail::view_rows(rows, 0, old, metric()).vectors(), graph_, resources);
    builder.append_on(there, detail::view_rows(rows, old, rows.ntotal, metric()), graph_k(), unmeasured_);
    if (auto changed = there.changed(old / kShare, resources)) return detail::GraphChange(graph_, *std::move(changed));
    gnnd::KnnGraph whole = detail::graph_that_grows(rows.ntotal, graph_k(), metric());
    there.copy_graph(whole.ids(), whole.distances());
    return detail::GraphChange(graph_, std::move(whole));
}

/// True where the links of all n objects are to be chosen: where most are concerned, and when there are a quarter more
/// than there were then, whose entry is that of those and of whom some old ones have lost links to them. Queries find
/// as much where links are chosen for some at a time: measured, benchs/NOTEBOOK.md.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::links_all(idx_t n, idx_t concerned) const {
    return concerned > n / 2 || n > linked_ + linked_ / 4;
}

/// True where the CPU may change the rows of the graph that little is added to, instead of making another.
template <class FaissIndex>
bool GnndIndex<FaissIndex>::appends_rows(idx_t old, idx_t n) const {
    return old > graph_.k() && graph_.k() == graph_k() && n - old <= gnnd::detail::kMostAppended &&
           double(n - old) <= gnnd::kSearchedShare * double(old) && builder.resources() == nullptr &&
           gnnd::detail::choose(builder.params.device).kind == gnnd::Device::Kind::cpu;
}

template <class FaissIndex>
gnnd::KnnGraph GnndIndex<FaissIndex>::append_all(const faiss::IndexFlat& rows, idx_t old, bool measured) {
    std::optional<detail::Unmeasured> without;
    if (!measured) without.emplace(builder);
    return builder.append(detail::view_rows(rows, 0, old, metric()), graph_,
                          detail::view_rows(rows, old, rows.ntotal, metric()), graph_k(), unmeasured_);
}

}  // namespace faiss_ext
