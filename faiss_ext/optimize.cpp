// SPDX-License-Identifier: MIT
#include "faiss_ext/optimize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/pages.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/faiss_resources.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/far_links.h"
#include "gnnd/detail/link_levels.h"
#include "gnnd/device.h"
#include "gnnd/search_links.h"

namespace faiss_ext::detail {

namespace {

constexpr std::int64_t kChunk = 4096, kAtOnce = gnnd::cpu::kPanelColumns;  // objects

/// The object nearest to the mean.
std::int32_t find_entry(const faiss::IndexFlat& storage) {
    const gnnd::Callbacks hooks = interrupt_hooks();
    const gnnd::cpu::Team team{gnnd::cpu::Team::resolve(0), &hooks.interrupt};
    const std::int64_t n = storage.ntotal, d = storage.d, chunks = (n + kChunk - 1) / kChunk;
    // Sums of chunks, which no number of threads changes.
    std::vector<double> sums(std::size_t(chunks * d));
    team.for_chunks(n, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
        double* sum = sums.data() + begin / kChunk * d;
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t c = 0; c < d; ++c) sum[c] += storage.get_xb()[i * d + c];
    });
    std::vector<float> mean(d);
    for (std::int64_t c = 0; c < d; ++c) {
        double sum = 0;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * d + c];
        mean[c] = float(sum / double(n));
    }
    using Found = std::pair<float, std::int32_t>;
    std::vector<Found> nearest(chunks);
    team.for_chunks(n, kChunk, [&](int, std::int64_t begin, std::int64_t end) {
        const StorageDistances distances(storage);
        Found best{HUGE_VALF, std::int32_t(begin)};
        std::array<std::int32_t, kAtOnce> objects;
        std::array<float, kAtOnce> keys;
        for (std::int64_t i = begin; i < end; i += kAtOnce) {
            const auto count = int(std::min<std::int64_t>(kAtOnce, end - i));
            std::iota(objects.begin(), objects.begin() + count, std::int32_t(i));
            distances.to_query(mean.data(), objects.data(), count, keys.data());
            for (int j = 0; j < count; ++j) best = std::min(best, {keys[j], objects[j]});
        }
        nearest[begin / kChunk] = best;
    });
    return std::min_element(nearest.begin(), nearest.end())->second;
}

}  // namespace

void check_fit(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph) {
    if (graph.n != source.vectors().n || graph.metric != source.metric())
        fail(std::string(who) + ": the graph has " + std::to_string(graph.n) + " objects under " +
             std::string(gnnd::name_of(graph.metric)) + ", the source " + std::to_string(source.vectors().n) +
             " under " + std::string(gnnd::name_of(source.metric())));
}

void check_graph(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph) {
    check_fit(who, source, graph);
    if (source.device() < 0) check_request(source, 1);
    gnnd::check_structure(graph);
}

LinkTree room_for_links(std::int64_t n, int degree, int upper_degree, std::int64_t room) {
    LinkTree tree;
    tree.degree = degree;
    tree.upper_degree = upper_degree;
    const auto places = [&](std::int64_t objects) {
        return gnnd::detail::LinkLevels::places_for(objects, degree, upper_degree);
    };
    resize_with_pages(tree.links, places(n), places(room));
    resize_with_pages(tree.parents, std::size_t(n), std::size_t(room));
    std::fill(tree.parents.begin(), tree.parents.end(), -1);
    if (upper_degree > 0) {
        resize_with_pages(tree.levels, std::size_t(n), std::size_t(room));
        resize_with_pages(tree.offsets, std::size_t(n) + 1, std::size_t(room) + 1);
    }
    return tree;
}

void make_links(const VectorSource& source, const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                const LinkPlace& place, LinkTree& tree, const std::vector<std::int32_t>& former) {
    gnnd::LinkParams params;
    params.degree = tree.degree;
    const bool on_gpu = place.device.kind == gnnd::Device::Kind::cuda && tree.degree <= gnnd::kMaxGpuDegree;
    params.device = on_gpu ? place.device : gnnd::Device{gnnd::Device::Kind::cpu, 0};
    gnnd::Resources* const resources = on_gpu ? place.resources : nullptr;
    const gnnd::Callbacks hooks = interrupt_hooks();
    const gnnd::VectorView stored = view_rows(storage, 0, storage.ntotal, source.metric()).vectors(),
                           on_host = source.device() >= 0 ? stored : source.vectors();
    // The CPU finds the entry while a GPU chooses; where it chooses itself, afterwards.
    const bool beside = place.device.kind == gnnd::Device::Kind::cuda;
    std::future<std::int32_t> entry =
        std::async(beside ? std::launch::async : std::launch::deferred, [&storage] { return find_entry(storage); });
    const gnnd::VectorView* const levels = tree.upper_degree > 0 ? &on_host : nullptr;
    const bool far = gnnd::device_of(graph.ids) < 0 && gnnd::detail::needs_far_links(on_host, graph, levels, hooks);
    (far ? gnnd::detail::choose_far_links : gnnd::search_links)(on_gpu && !far ? source.vectors() : on_host, graph,
                                                                params, tree.links.data(), hooks, resources);
    tree.entry = entry.get();
    if (tree.upper_degree > 0) {
        params.degree = tree.upper_degree;
        const gnnd::detail::LinkLevels upper(on_host, graph.metric, tree.entry, params, hooks, resources);
        upper.put_into(tree.degree, tree.links.data(), tree.levels.data(), tree.offsets.data());
        tree.top = upper.top();
    } else {
        gnnd::detail::link_anywhere(far, graph.n, tree.degree, tree.entry, tree.links.data());
    }
    LinkRows rows = tree.rows();
    StorageDistances distances(storage);
    TreeGrowth growth(distances, rows, interrupt_hooks());
    growth.follow(tree.entry);
    growth.attach_others(0, former);
    tree.missed = growth.open_ways();
}

LinkTree make_links(const VectorSource& source, const faiss::IndexFlat& storage, const gnnd::KnnGraphView& graph,
                    int degree, int upper_degree, const Gpu& gpu) {
    LinkTree tree = room_for_links(graph.n, degree, upper_degree);
    if (gpu.resources == nullptr) {
        std::string why;
        const bool there = source.device() >= 0 && gnnd::device_usable(source.device(), why);
        make_links(source, storage, graph, there ? LinkPlace{{gnnd::Device::Kind::cuda, source.device()}} : LinkPlace{},
                   tree);
    } else {
        FaissResources resources(gpu);
        make_links(source, storage, graph, {{gnnd::Device::Kind::cuda, gpu.device}, &resources}, tree);
    }
    return tree;
}

}  // namespace faiss_ext::detail

namespace faiss_ext {

SearchGraph optimize_graph(const VectorSource& source, const gnnd::KnnGraphView& graph, int degree, const Gpu& gpu) {
    return detail::with_faiss_errors([&] {
        detail::check_graph("optimize_graph", source, graph);
        faiss::IndexFlat storage(source.vectors().d, detail::search_metric(source.metric(), "optimize_graph"));
        detail::fill_storage(storage, source);
        detail::LinkTree made = detail::make_links(source, storage, graph, degree, 0, gpu);
        return SearchGraph{degree, made.entry, std::move(made.links)};
    });
}

}  // namespace faiss_ext
