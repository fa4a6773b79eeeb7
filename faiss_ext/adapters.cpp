// SPDX-License-Identifier: MIT
#include "faiss_ext/adapters.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/graph_builder.h"
#include "gnnd/detail/checks.h"
#include "gnnd/random.h"
#include "gnnd/search_links.h"

namespace faiss_ext {

using detail::fail;
using gnnd::detail::check_range;

namespace {

constexpr int kMaxLinks = gnnd::kMaxDegree;  // far beyond what is of use; keeps FAISS's int arithmetic safe

/// Fills the index's storage; gives it back as what the Flat variants have it as.
template <class Index>
const faiss::IndexFlat& add_vectors(Index& index, const VectorSource& source) {
    auto& storage = dynamic_cast<faiss::IndexFlat&>(*index.storage);
    detail::fill_storage(storage, source);
    index.ntotal = storage.ntotal;
    return storage;
}

VectorSource stored_rows(const faiss::IndexHNSWFlat& index, gnnd::Metric metric) {
    return detail::view_rows(dynamic_cast<const faiss::IndexFlat&>(*index.storage), 0, index.ntotal, metric);
}

void report(bool verbose, const char* who, const SearchGraph& made) {
    if (!verbose) return;
    const auto used = made.links.size() - std::size_t(std::count(made.links.begin(), made.links.end(), -1));
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%s: %.1f links an object, entry point %d", who,
                  double(used) * made.degree / double(made.links.size()), made.entry);
    detail::print_line(line.data());
}

/// Draws the levels of all objects as FAISS does, fills those above 0 and sets the entry point. Each level gets a graph
/// over its members.
/// \param source  on the host
/// \param made    level 0
void add_upper_levels(faiss::HNSW& hnsw, const VectorSource& source, const SearchGraph& made,
                      const HnswParams& params) {
    const gnnd::VectorView& x = source.vectors();
    const auto bytes = std::size_t(x.d) * size_of(x.dtype);
    GnndParams on_cpu;
    on_cpu.device.kind = gnnd::Device::Kind::cpu;
    const auto builder = params.gpu.resources != nullptr ? make_graph_builder("gnnd", params.gpu)
                                                         : std::make_unique<GnndGraphBuilder>(on_cpu);
    hnsw.max_level = hnsw.prepare_level_tab(std::size_t(x.n), false);
    hnsw.entry_point = made.entry;
    for (std::int64_t i = 0; i < x.n; ++i)
        std::copy_n(made.of(i), made.degree, hnsw.neighbors.data() + hnsw.offsets[i]);
    for (int level = 1; level <= hnsw.max_level; ++level) {
        std::vector<std::int32_t> members;
        for (std::int64_t i = 0; i < x.n; ++i)
            if (hnsw.levels[i] > level) members.push_back(std::int32_t(i));
        hnsw.entry_point = members.front();
        if (members.size() == 1) return;
        std::vector<std::byte> rows(members.size() * bytes);
        for (std::size_t m = 0; m < members.size(); ++m) std::memcpy(rows.data() + m * bytes, x.row(members[m]), bytes);
        const VectorSource subset({rows.data(), std::int64_t(members.size()), x.d, x.dtype, 0}, source.metric());
        const int degree = hnsw.nb_neighbors(level);
        const SearchGraph links =
            optimize_graph(subset, builder->build(subset, std::min(4 * degree, gnnd::kMaxK)), degree, params.gpu);
        hnsw.entry_point = members[links.entry];
        for (std::size_t m = 0; m < members.size(); ++m) {
            std::size_t begin = 0, end = 0;
            hnsw.neighbor_range(members[m], level, &begin, &end);
            for (int j = 0; j < degree; ++j) {
                const std::int32_t link = links.of(std::int64_t(m))[j];
                hnsw.neighbors[begin + j] = link < 0 ? -1 : members[link];
            }
        }
    }
}

}  // namespace

std::unique_ptr<faiss::IndexNSGFlat> to_nsg(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                            const NsgParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_nsg";
        const gnnd::VectorView& x = source.vectors();
        check_range("NsgParams", "R", params.R, 1, kMaxLinks);
        check_range("NsgParams", "search_L", params.search_L, 1, std::numeric_limits<int>::max());
        detail::check_graph(who, source, graph);
        detail::check_links(who, x.n, params.R);

        auto index =
            std::make_unique<faiss::IndexNSGFlat>(int(x.d), params.R, detail::search_metric(source.metric(), who));
        index->verbose = params.verbose;
        SearchGraph made = detail::make_links(source, add_vectors(*index, source), graph, params.R, params.gpu);
        report(params.verbose, who, made);
        detail::set_links(*index, std::move(made));
        // A beam wider than n would draw random objects without end.
        index->nsg.search_L = int(std::min<std::int64_t>(params.search_L, x.n));
        return index;
    });
}

std::unique_ptr<faiss::IndexHNSWFlat> to_hnsw(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                              const HnswParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_hnsw";
        const gnnd::VectorView& x = source.vectors();
        check_range("HnswParams", "M", params.M, 2, kMaxLinks / 2);
        check_range("HnswParams", "efSearch", params.efSearch, 1, std::numeric_limits<int>::max());
        detail::check_graph(who, source, graph);

        auto index =
            std::make_unique<faiss::IndexHNSWFlat>(int(x.d), params.M, detail::search_metric(source.metric(), who));
        index->verbose = params.verbose;
        faiss::HNSW& hnsw = index->hnsw;
        SearchGraph made =
            detail::make_links(source, add_vectors(*index, source), graph, hnsw.nb_neighbors(0), params.gpu);
        report(params.verbose, who, made);
        if (params.upper_levels)
            add_upper_levels(hnsw, source.device() < 0 ? source : stored_rows(*index, source.metric()), made, params);
        else
            detail::set_links(*index, std::move(made));
        hnsw.efSearch = int(std::min<std::int64_t>(params.efSearch, x.n));
        return index;
    });
}

#ifdef GNND_FAISS_HAS_CAGRA
std::unique_ptr<faiss::IndexHNSWCagra> to_hnsw_cagra(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                                     const HnswCagraParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_hnsw_cagra";
        const gnnd::VectorView& x = source.vectors();
        check_range("HnswCagraParams", "degree", params.degree, 4, kMaxLinks);
        if (params.degree % 2 != 0)
            fail(std::string(who) + ": degree is " + std::to_string(params.degree) + ", not even");
        check_range("HnswCagraParams", "efSearch", params.efSearch, 1, std::numeric_limits<int>::max());
        detail::check_graph(who, source, graph);
        if (params.degree > x.n - 1)
            fail(std::string(who) + ": degree is " + std::to_string(params.degree) + ", the other objects are only " +
                 std::to_string(x.n - 1));
        auto index = std::make_unique<faiss::IndexHNSWCagra>(int(x.d), params.degree / 2,
                                                             detail::search_metric(source.metric(), who));
        index->verbose = params.verbose;
        index->base_level_only = true;
        SearchGraph made = detail::make_links(source, add_vectors(*index, source), graph, params.degree, params.gpu);
        report(params.verbose, who, made);
        // CAGRA knows no missing links: what the graph could not give is drawn at random.
        for (std::int64_t i = 0; i < x.n; ++i) {
            std::int32_t* row = made.links.data() + i * made.degree;
            std::int32_t* end = std::find(row, row + made.degree, -1);
            gnnd::Random random(1, std::uint64_t(i));
            while (end != row + made.degree) {
                const auto id = std::int32_t(random.below(std::uint32_t(x.n)));
                if (id != i && std::find(row, end, id) == end) *end++ = id;
            }
        }
        detail::set_links(*index, std::move(made));
        index->hnsw.efSearch = int(std::min<std::int64_t>(params.efSearch, x.n));
        return index;
    });
}
#endif

std::unique_ptr<faiss::IndexNNDescentFlat> to_nndescent(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                                        const NNDescentIndexParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_nndescent";
        const gnnd::VectorView& x = source.vectors();
        check_range("NNDescentIndexParams", "search_L", params.search_L, 1, std::numeric_limits<int>::max());
        detail::check_graph(who, source, graph);
        const std::int64_t columns = std::min(graph.k, x.n - 1);
        detail::check_links(who, x.n, columns);

        auto index = std::make_unique<faiss::IndexNNDescentFlat>(int(x.d), int(columns),
                                                                 detail::search_metric(source.metric(), who));
        index->verbose = params.verbose;
        add_vectors(*index, source);
        faiss::NNDescent& descent = index->nndescent;
        descent.ntotal = int(x.n);
        descent.final_graph.resize(x.n * columns);
        for (std::int64_t i = 0; i < x.n; ++i)
            std::copy_n(graph.ids_of(i), columns, descent.final_graph.begin() + i * columns);
        // FAISS starts from search_L distinct random objects, which it can draw only from a larger set.
        descent.search_L = int(std::min<std::int64_t>(params.search_L, x.n - 1));
        descent.has_built = true;
        return index;
    });
}

}  // namespace faiss_ext
