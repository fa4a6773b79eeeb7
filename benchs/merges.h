// SPDX-License-Identifier: MIT
#pragma once
/// \file merges.h
/// Graphs made of the graphs of parts, in the ways that build_bench compares: GGM, searching, and part by part.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "benchs/merge_by_search.h"
#include "benchs/settings.h"
#include "faiss_ext/adapters.h"
#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"

namespace gnnd::benchs {

/// The parts in which a configuration has the graph built: two sets that are merged, or sets that are added in turn.
struct Parts {
    std::int64_t merge = 0;  ///< vectors of the first of two sets, whose graphs are there before the clock starts
    int parts = 0;           ///< the graph of the first of so many parts grows by one after the other; 0: no parts
    std::string by = "ggm";  ///< of `merge`: ggm, append (GNND's own search), nsg or hnsw (FAISS's searches)
    int beam = 0;            ///< of nsg and hnsw; 0: k

    bool any() const { return merge != 0 || parts != 0; }
    /// What is timed is FAISS's indexes and searches, by the CPU.
    bool by_faiss() const { return by == "nsg" || by == "hnsw"; }

    /// \throws InvalidArgument for what has no meaning
    void take_from(Settings& settings) {
        settings.take("merge", [&](const std::string& text) { merge = std::stoll(text); });
        settings.take("parts", [&](const std::string& text) { parts = std::stoi(text); });
        settings.take("by", [&](const std::string& text) { by = text; });
        settings.take("beam", [&](const std::string& text) { beam = std::stoi(text); });
        if (merge != 0 && parts != 0) throw InvalidArgument("merge or parts, not both");
        if (merge < 0 || parts < 0 || parts == 1 || beam < 0)
            throw InvalidArgument("allowed are merge >= 1, parts >= 2 and beam >= 0");
        if (by != "ggm" && by != "append" && !by_faiss())
            throw InvalidArgument("by=" + by + ", allowed are ggm, append, nsg and hnsw");
    }
};

/// A graph, and what it took to make it.
struct PartsResult {
    KnnGraph graph;
    BuildStats stats;                      ///< of the last merge or build; none where FAISS searched
    double seconds = 0;                    ///< what is timed, see Parts
    std::map<std::string, double> timing;  ///< of the steps; `halves` is not part of `seconds`
};

inline VectorView rows_of(VectorView view, std::int64_t begin, std::int64_t count) {
    view.data = view.row(begin);
    view.n = count;
    return view;
}

/// \param views  two halves
/// \param halves their graphs
inline PartsResult merge_halves(const VectorView (&views)[2], const KnnGraph (&halves)[2], const Parts& parts,
                                const BuildParams& params) {
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    PartsResult result;
    if (!parts.by_faiss()) {
        BuildResult built = parts.by == "ggm"
                                ? merge(views[0], halves[0], views[1], halves[1], params)
                                : append(views[0], halves[0], views[1], params, {}, nullptr, AppendMethod::search);
        result.graph = std::move(built.graph);
        result.stats = std::move(built.stats);
        result.seconds = elapsed();
        return result;
    }
    const int beam = parts.beam != 0 ? parts.beam : params.k;
    std::vector<float> rows[2];
    VectorView floats[2];
    for (int half = 0; half < 2; ++half) {
        rows[half].resize(std::size_t(views[half].n * views[half].d));
        copy_as_f32(views[half], 0, views[half].n, rows[half].data());
        floats[half] = {rows[half].data(), views[half].n, views[half].d, DType::f32, 0};
    }
    const MakeIndex make = [&](const faiss_ext::VectorSource& source,
                               const KnnGraph& graph) -> std::unique_ptr<faiss::Index> {
        if (parts.by == "nsg") {
            auto index = faiss_ext::to_nsg(source, graph);
            index->nsg.search_L = beam;
            return index;
        }
        auto index = faiss_ext::to_hnsw(source, graph);
        index->hnsw.efSearch = beam;
        return index;
    };
    SearchedMerge merged = merge_by_search(floats, halves, params.metric, make);
    result.seconds = elapsed();
    result.graph = std::move(merged.graph);
    result.timing = {{"index", merged.index_seconds}, {"search", merged.search_seconds}, {"fold", merged.fold_seconds}};
    return result;
}

/// Merges the graphs of two halves, which are built with the same k, threads and device, everything else by default; or
/// builds the whole part by part.
/// \param vectors  on the host
/// \throws as merge() and append(), InvalidArgument for parts that are more than the vectors
inline PartsResult build_of_parts(const VectorView& vectors, const Parts& parts, const BuildParams& params) {
    using Clock = std::chrono::steady_clock;
    const std::int64_t n = vectors.n;
    const auto start = Clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    if (parts.merge != 0) {
        if (parts.merge >= n)
            throw InvalidArgument("merge=" + std::to_string(parts.merge) + " of " + std::to_string(n));
        BuildParams of_halves;
        of_halves.k = params.k;
        of_halves.metric = params.metric;
        of_halves.threads = params.threads;
        of_halves.device = params.device;
        const VectorView views[2] = {rows_of(vectors, 0, parts.merge), rows_of(vectors, parts.merge, n - parts.merge)};
        const KnnGraph halves[2] = {build(views[0], of_halves).graph, build(views[1], of_halves).graph};
        const double halves_seconds = elapsed();
        PartsResult result = merge_halves(views, halves, parts, params);
        result.timing["halves"] = halves_seconds;
        return result;
    }
    if (parts.parts > n) throw InvalidArgument("parts=" + std::to_string(parts.parts) + " of " + std::to_string(n));
    BuildResult grown;
    for (int part = 0; part < parts.parts; ++part) {
        const std::int64_t begin = n * part / parts.parts, end = n * (part + 1) / parts.parts;
        const VectorView added = rows_of(vectors, begin, end - begin), old = rows_of(vectors, 0, begin);
        grown = part == 0 ? build(added, params)
                          : append(old, grown.graph, added, params, {}, nullptr, AppendMethod::merge);
    }
    return {std::move(grown.graph), std::move(grown.stats), elapsed(), {}};
}

}  // namespace gnnd::benchs
