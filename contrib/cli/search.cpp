// SPDX-License-Identifier: MIT
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "commands.h"
#include "common.h"
#include "faiss_ext/detail/wrappers.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "index_file.h"
#include "interrupt.h"
#include "threads.h"
#include "truth.h"

namespace cli {

namespace {

struct SearchOptions {
    std::string index, queries, truth, output, distances;
    int k = 10;
    int ef = 0;
    bool json = false;
};

/// The most results, and the widest beam, that a search may ask for. FAISS does not check it: past these IndexNSG never
/// returns and IndexNNDescent divides by zero.
std::int64_t widest(faiss::Index* index) {
    faiss::Index* inner = faiss_ext::detail::innermost(index);
    return dynamic_cast<faiss::IndexNNDescent*>(inner) != nullptr ? inner->ntotal - 1 : inner->ntotal;
}

/// The parameter that widens the search of a kind of index.
struct Beam {
    const char* name;
    /// Sets it, to no more than there is to visit; false for another kind of index.
    bool (*set)(faiss::Index& index, std::int64_t beam);
};

template <class Index, class Set>
bool set_beam_of(faiss::Index& index, const Set& set) {
    auto* kind = dynamic_cast<Index*>(&index);
    if (kind != nullptr) set(*kind);
    return kind != nullptr;
}

constexpr std::array kBeams{
    Beam{"efSearch (HNSW)",
         [](faiss::Index& index, std::int64_t beam) {
             return set_beam_of<faiss::IndexHNSW>(index, [&](faiss::IndexHNSW& hnsw) {
                 hnsw.hnsw.efSearch = int(std::min<std::int64_t>(beam, std::max<std::int64_t>(hnsw.ntotal, 1)));
             });
         }},
    Beam{"search_L (NSG, NNDescent)",
         [](faiss::Index& index, std::int64_t beam) {
             return set_beam_of<faiss::IndexNSG>(
                        index, [&](faiss::IndexNSG& nsg) { nsg.nsg.search_L = int(std::min(beam, widest(&nsg))); }) ||
                    set_beam_of<faiss::IndexNNDescent>(index, [&](faiss::IndexNNDescent& nndescent) {
                        nndescent.nndescent.search_L = int(std::min(beam, widest(&nndescent)));
                    });
         }},
    Beam{"nprobe (IVF)", [](faiss::Index& index, std::int64_t beam) {
             return set_beam_of<faiss::IndexIVF>(index, [&](faiss::IndexIVF& ivf) {
                 ivf.nprobe = std::size_t(std::min<std::int64_t>(beam, std::int64_t(ivf.nlist)));
             });
         }}};

std::string beam_names() {
    std::string names;
    for (const Beam& beam : kBeams) names += (names.empty() ? "" : ", ") + std::string(beam.name);
    return names;
}

/// \param beam  0: the index's own, which may be wider than what can be visited, and FAISS takes memory for it
void set_beam(faiss::Index* index, std::int64_t beam) {
    faiss::Index* inner = faiss_ext::detail::innermost(index);
    if (beam == 0) {
        auto* hnsw = dynamic_cast<faiss::IndexHNSW*>(inner);
        if (hnsw != nullptr) hnsw->hnsw.efSearch = int(std::min<std::int64_t>(hnsw->hnsw.efSearch, widest(hnsw)));
        return;
    }
    for (const Beam& kind : kBeams)
        if (kind.set(*inner, beam)) return;
    throw gnnd::InvalidArgument("--ef: this kind of index has no search beam; there are " + beam_names());
}

std::int32_t to_file_id(faiss_ext::idx_t id) {
    if (id > std::numeric_limits<std::int32_t>::max())
        throw gnnd::InvalidArgument("id " + std::to_string(id) + " does not fit in the output's 32 bits");
    return std::int32_t(id);
}

struct Outcome {
    double seconds = 0;
    std::optional<double> recall;
};

Outcome search(const SearchOptions& options, faiss::Index& index, const gnnd::io::VectorFile& queries) {
    std::optional<Truth> truth;
    if (!options.truth.empty()) truth.emplace(options.truth, queries, options.k, index.metric_type);
    std::optional<gnnd::io::VectorWriter> writer;
    if (!options.output.empty()) writer.emplace(options.output, queries.n(), options.k, gnnd::DType::i32);
    std::optional<gnnd::io::VectorWriter> distance_writer;
    if (!options.distances.empty())
        distance_writer.emplace(options.distances, queries.n(), options.k, gnnd::DType::f32);
    const float missing = index.metric_type == faiss::METRIC_INNER_PRODUCT ? -INFINITY : INFINITY;

    // A graph's rows leave the object itself out; the search finds it, so ask for one more and leave it out as well.
    const bool drop_self = truth && truth->leaves_self_out();
    const int asked = int(std::min<std::int64_t>(options.k + (drop_self ? 1 : 0), widest(&index)));
    if (asked < 1) throw gnnd::InvalidArgument(options.index + " holds too few vectors to be searched");
    constexpr std::int64_t kBatch = 4096;
    std::vector<float> vectors(std::min(kBatch, queries.n()) * queries.d());
    std::vector<float> distances(kBatch * asked);
    std::vector<faiss_ext::idx_t> ids(kBatch * asked);
    std::vector<std::int32_t> row(options.k);
    std::vector<float> row_distances(options.k);
    Outcome outcome;
    std::int64_t hits = 0;
    for (std::int64_t begin = 0; begin < queries.n(); begin += kBatch) {
        const std::int64_t count = std::min(kBatch, queries.n() - begin);
        gnnd::copy_as_f32(queries.view(), begin, count, vectors.data());
        const auto start = std::chrono::steady_clock::now();
        index.search(count, vectors.data(), asked, distances.data(), ids.data());
        outcome.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        stop_if_interrupted();
        for (std::int64_t i = 0; i < count; ++i) {
            int kept = 0;
            for (int j = 0; j < asked && kept < options.k; ++j) {
                const faiss_ext::idx_t id = ids[i * asked + j];
                if (drop_self && id == begin + i) continue;
                const float distance = distances[i * asked + j];
                if (truth && truth->holds(begin + i, id, distance)) ++hits;
                row_distances[kept] = id < 0 ? missing : distance;
                row[kept++] = to_file_id(id);
            }
            std::fill(row.begin() + kept, row.end(), -1);
            std::fill(row_distances.begin() + kept, row_distances.end(), missing);
            if (writer) writer->append(row.data(), 1);
            if (distance_writer) distance_writer->append(row_distances.data(), 1);
        }
    }
    queries.require_unchanged();
    if (writer) writer->commit();
    if (distance_writer) distance_writer->commit();
    if (truth) outcome.recall = double(hits) / (double(queries.n()) * options.k);
    return outcome;
}

void run(const SearchOptions& options) {
    require_outputs({options.output, options.distances}, {options.index, options.queries, options.truth});
    use_blas();
    const std::unique_ptr<faiss::Index> index = read_index_file(options.index);
    const gnnd::io::VectorFile queries(options.queries);
    if (queries.d() != index->d)
        throw gnnd::InvalidArgument(options.queries + " has vectors of " + std::to_string(queries.d()) +
                                    " components, " + options.index + " of " + std::to_string(index->d));
    set_beam(index.get(), options.ef);

    const Outcome outcome = search(options, *index, queries);
    const double rate = double(queries.n()) / std::max(outcome.seconds, 1e-9);
    if (options.json) {
        Json json = {{"index", options.index},
                     {"queries", queries.n()},
                     {"k", options.k},
                     {"seconds", outcome.seconds},
                     {"queries_per_second", rate}};
        if (outcome.recall) json["recall"] = *outcome.recall;
        if (!options.output.empty()) json["output"] = options.output;
        if (!options.distances.empty()) json["distances"] = options.distances;
        print(json);
        return;
    }
    if (outcome.recall) std::printf("Recall@%d %.4f\n", options.k, *outcome.recall);
    std::printf("%lld queries in %.3f s, %.0f queries/s\n", static_cast<long long>(queries.n()), outcome.seconds, rate);
    if (!options.output.empty()) std::printf("neighbours  %s\n", options.output.c_str());
    if (!options.distances.empty()) std::printf("distances   %s\n", options.distances.c_str());
}

}  // namespace

void add_search(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("search", "Search a FAISS index, of any kind, with a file of queries");
    const auto options = std::make_shared<SearchOptions>();
    add_name(command, "INDEX", options->index, "FILE", "index file of FAISS")->required();
    add_base(command, options->queries, "QUERIES");
    add_k(command, options->k, 1 << 20, "neighbours per query");
    const std::string ids = formats_of(gnnd::DType::i32);
    add_name(command, "--truth", options->truth, "FILE",
             "right neighbours, for Recall@k: ids (" + ids +
                 "), one row per query, or the graph of the queries when they are the indexed vectors");
    add_output(command, options->output, "write the neighbours' ids here: " + ids)->required(false);
    add_name(command, "--distances", options->distances, "FILE",
             "write their distances here: " + formats_of(gnnd::DType::f32));
    add_whole(command, "--ef", options->ef, 1, std::numeric_limits<int>::max(),
              "search beam instead of the index's own: " + beam_names())
        ->default_str("");
    add_json(command, options->json);
    command.footer("With a graph as truth the object itself is left out of its neighbours, in the output as well.");
    command.callback([options] { run(*options); });
}

}  // namespace cli
