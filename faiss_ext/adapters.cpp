// SPDX-License-Identifier: MIT
#include "faiss_ext/adapters.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/faiss_links.h"
#include "faiss_ext/detail/index_rows.h"
#include "faiss_ext/detail/optimize.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/rows.h"
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

void report(bool verbose, const char* who, detail::LinkTree& made) {
    if (!verbose) return;
    const detail::LinkRows rows = made.rows();
    std::int64_t used = 0;
    for (std::int64_t i = 0; i < rows.n(); ++i) used += rows.end_of(i) - rows.of(i);
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%s: %.1f links an object, entry point %d", who,
                  double(used) / double(rows.n()), made.entry);
    detail::print_line(line.data());
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
        detail::LinkTree made = detail::make_links(source, add_vectors(*index, source), graph, params.R, 0, params.gpu);
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
        detail::LinkTree made =
            detail::make_links(source, add_vectors(*index, source), graph, detail::degree_of(*index),
                               params.base_level_only ? 0 : detail::upper_degree_for(*index, x.n), params.gpu);
        report(params.verbose, who, made);
        detail::set_links(*index, std::move(made));
        index->hnsw.efSearch = int(std::min<std::int64_t>(params.efSearch, x.n));
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
        detail::LinkTree made =
            detail::make_links(source, add_vectors(*index, source), graph, params.degree, 0, params.gpu);
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
