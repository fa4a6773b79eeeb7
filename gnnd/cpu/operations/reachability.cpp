// SPDX-License-Identifier: MIT
// HDBSCAN's core distances and mutual reachability.
#include "gnnd/cpu/operations/join.h"
#include "gnnd/cpu/operations/operations.h"

namespace gnnd::cpu {
namespace {

OwnedEdges distances_of(const char* who, const KnnGraphView& graph, const ReachabilityParams& params,
                        const Team& team) {
    OwnedEdges own = edges_of(who, graph, {params.neighbors, GraphValues::distance, {}, params.threads}, team);
    detail::check_params(params, own.edges);
    return own;
}

Array<float> cores_of(const Edges& edges, int min_samples, const Team& team) {
    Array<float> cores(static_cast<std::size_t>(edges.n));
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const int place = std::min(min_samples, edges.length_of(i)) - 1;
            cores[std::size_t(i)] = place < 0 ? std::numeric_limits<float>::infinity() : edges.values_of(i)[place];
        }
    });
    return cores;
}

}  // namespace

Array<float> core_distances(const KnnGraphView& graph, const ReachabilityParams& params, const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    const OwnedEdges own = distances_of("core_distances", graph, params, team);
    return cores_of(own.edges, params.min_samples, team);
}

CsrGraph mutual_reachability_graph(const KnnGraphView& graph, const ReachabilityParams& params,
                                   const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    OwnedEdges own = distances_of("mutual_reachability_graph", graph, params, team);
    Edges& edges = own.edges;
    const Array<float> cores = cores_of(edges, params.min_samples, team);
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            float* values = own.values.data() + i * edges.k;
            const int length = edges.length_of(i);
            for (int j = 0; j < length; ++j) {
                const float core = std::max(cores[std::size_t(i)], cores[std::size_t(edges.ids_of(i)[j])]);
                values[j] = std::max(values[j] / params.alpha, core);
            }
        }
    });
    edges.high = std::numeric_limits<float>::max();
    return join_directions(edges, Nearer<true, false>(), team);
}

}  // namespace gnnd::cpu
