#include "faiss_ext/adapters.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/rows.h"
#include "faiss_ext/detail/search_links.h"

namespace faiss_ext {

using detail::fail;

namespace {

constexpr int kMaxLinks = 4096;  // far beyond what is of use; keeps FAISS's int arithmetic safe

void check(const char* who, const VectorSource& source, const gnnd::KnnGraphView& graph) {
    if (graph.n != source.vectors().n || graph.metric != source.metric())
        fail(std::string(who) + ": the graph has " + std::to_string(graph.n) + " objects under " +
             std::string(gnnd::name_of(graph.metric)) + ", the source " + std::to_string(source.vectors().n) +
             " under " + std::string(gnnd::name_of(source.metric())));
    detail::check_request(source, 1);
    gnnd::check_structure(graph);
}

void check_range(const char* who, const char* what, int value, int least, int most) {
    if (value < least || value > most)
        fail(std::string(who) + ": " + what + " is " + std::to_string(value) + ", allowed are " +
             std::to_string(least) + " to " + std::to_string(most));
}

/// FAISS 1.7.3 counts links in int.
void check_links(const char* who, std::int64_t n, std::int64_t links) {
    if (n * links > std::numeric_limits<int>::max())
        fail(std::string(who) + ": " + std::to_string(n) + " objects with " + std::to_string(links) +
             " links each are more than FAISS can number, 2147483647");
}

/// Fills the index's storage; gives it back as what the Flat variants have it as.
template <class Index>
const faiss::IndexFlat& add_vectors(Index& index, const VectorSource& source) {
    detail::for_float_rows(
        source, [&](std::int64_t, std::int64_t count, const float* rows) { index.storage->add(count, rows); });
    index.ntotal = index.storage->ntotal;
    return dynamic_cast<const faiss::IndexFlat&>(*index.storage);
}

void report(bool verbose, const char* who, const detail::SearchLinks& links) {
    if (!verbose) return;
    const auto used = links.ids.size() - std::size_t(std::count(links.ids.begin(), links.ids.end(), -1));
    std::printf("%s: %.1f links an object, entry point %d\n", who,
                double(used) * links.degree / double(links.ids.size()), links.entry);
}

}  // namespace

std::unique_ptr<faiss::IndexNSGFlat> to_nsg(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                            const NsgParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_nsg";
        const gnnd::VectorView& x = source.vectors();
        check_range(who, "R", params.R, 1, kMaxLinks);
        check_range(who, "search_L", params.search_L, 1, std::numeric_limits<int>::max());
        check(who, source, graph);
        check_links(who, x.n, params.R);

        auto index =
            std::make_unique<faiss::IndexNSGFlat>(int(x.d), params.R, detail::search_metric(source.metric(), who));
        index->verbose = params.verbose;
        const detail::SearchLinks links = detail::make_search_links(add_vectors(*index, source), graph, params.R);
        report(params.verbose, who, links);
        faiss::NSG& nsg = index->nsg;
        nsg.ntotal = int(x.n);
        nsg.final_graph = std::make_shared<faiss::nsg::Graph<int>>(int(x.n), params.R);
        std::copy(links.ids.begin(), links.ids.end(), nsg.final_graph->data);
        nsg.enterpoint = links.entry;
        // A beam wider than n would draw random objects without end.
        nsg.search_L = int(std::min<std::int64_t>(params.search_L, x.n));
        nsg.is_built = true;
        index->is_built = true;
        return index;
    });
}

std::unique_ptr<faiss::IndexHNSWFlat> to_hnsw(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                              const HnswParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_hnsw";
        const gnnd::VectorView& x = source.vectors();
        check_range(who, "M", params.M, 2, kMaxLinks / 2);
        check_range(who, "efSearch", params.efSearch, 1, std::numeric_limits<int>::max());
        check(who, source, graph);

        auto index =
            std::make_unique<faiss::IndexHNSWFlat>(int(x.d), params.M, detail::search_metric(source.metric(), who));
        index->verbose = params.verbose;
        faiss::HNSW& hnsw = index->hnsw;
        const detail::SearchLinks links =
            detail::make_search_links(add_vectors(*index, source), graph, hnsw.nb_neighbors(0));
        report(params.verbose, who, links);
        hnsw.levels.assign(x.n, 1);
        hnsw.prepare_level_tab(x.n, true);
        for (std::int64_t i = 0; i < x.n; ++i)
            std::copy_n(links.of(i), links.degree, hnsw.neighbors.data() + hnsw.offsets[i]);
        hnsw.max_level = 0;
        hnsw.entry_point = links.entry;
        hnsw.efSearch = params.efSearch;
        return index;
    });
}

std::unique_ptr<faiss::IndexNNDescentFlat> to_nndescent(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                                        const NNDescentIndexParams& params) {
    return detail::with_faiss_errors([&] {
        const char* who = "to_nndescent";
        const gnnd::VectorView& x = source.vectors();
        check_range(who, "search_L", params.search_L, 1, std::numeric_limits<int>::max());
        check(who, source, graph);
        const std::int64_t columns = std::min(graph.k, x.n - 1);
        check_links(who, x.n, columns);

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
