// SPDX-License-Identifier: MIT
// The graph's entries as a sparse matrix: one direction, either, both.
#include <vector>

#include "gnnd/cpu/operations/join.h"
#include "gnnd/cpu/operations/operations.h"

namespace gnnd::cpu {
namespace {

template <bool kUnion>
CsrGraph join(const char* who, const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    const OwnedEdges own = edges_of(who, graph, params, team);
    return own.edges.larger_is_nearer ? join_directions(own.edges, Nearer<kUnion, true>(), team)
                                      : join_directions(own.edges, Nearer<kUnion, false>(), team);
}

}  // namespace

CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    const OwnedEdges own = edges_of("neighbors_graph", graph, params, team);
    const Edges& edges = own.edges;
    CsrGraph result;
    result.n = edges.n;
    result.indptr.resize(std::size_t(edges.n) + 1);
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::int64_t count = 0;
            for (std::int64_t j = 0; j < edges.columns; ++j)
                count += int(edges.counts(edges.ids_of(i)[j], edges.values_of(i)[j]));
            result.indptr[i + 1] = count;
        }
    });
    const std::int64_t entries = add_up(result.indptr, team);
    result.indices.resize(std::size_t(entries));
    result.values.resize(std::size_t(entries));
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        std::vector<Key> keys(std::size_t(edges.columns) + 1);
        for (std::int64_t i = begin; i < end; ++i) {
            const int count = sorted_row(edges, i, keys.data());
            for (int j = 0; j < count; ++j) {
                result.indices[std::size_t(result.indptr[i] + j)] = id_of(keys[j]);
                result.values[std::size_t(result.indptr[i] + j)] = value_of(keys[j]);
            }
        }
    });
    return result;
}

std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    const OwnedEdges own = edges_of("full_rows", graph, params, team);
    return count_full(own.edges, team);
}

CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks) {
    return join<true>("symmetric_graph", graph, params, callbacks);
}

CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks) {
    return join<false>("mutual_graph", graph, params, callbacks);
}

}  // namespace gnnd::cpu
