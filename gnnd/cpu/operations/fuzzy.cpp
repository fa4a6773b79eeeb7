// SPDX-License-Identifier: MIT
// UMAP's fuzzy simplicial set.
#include <vector>

#include "gnnd/cpu/operations/join.h"
#include "gnnd/cpu/operations/operations.h"
#include "gnnd/detail/fuzzy_row.h"

namespace gnnd::cpu {
namespace {

/// The mean of all distances and, for the object itself, a 0 in every row, added up in an order that threads do not
/// change.
double mean_distance(const Edges& edges, const Team& team) {
    std::vector<double> sums(std::size_t(edges.n / detail::kSummedRows + 1));
    std::vector<std::int64_t> counts(sums.size());
    team.for_chunks(edges.n, detail::kSummedRows, [&](int, std::int64_t begin, std::int64_t end) {
        double sum = 0;
        std::int64_t count = end - begin;
        for (std::int64_t i = begin; i < end; ++i) {
            const int length = edges.length_of(i);
            sum += detail::sum_of_row(edges.values_of(i), length);
            count += length;
        }
        sums[std::size_t(begin / detail::kSummedRows)] = sum;
        counts[std::size_t(begin / detail::kSummedRows)] = count;
    });
    double sum = 0;
    std::int64_t count = 0;
    for (std::size_t c = 0; c < sums.size(); ++c) sum += sums[c], count += counts[c];
    return count == 0 ? 0 : sum / double(count);
}

}  // namespace

CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params, const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    OwnedEdges own =
        edges_of("fuzzy_simplicial_set", graph, {params.neighbors, GraphValues::distance, {}, params.threads}, team);
    Edges& edges = own.edges;
    detail::check_params(params, edges);
    const detail::FuzzyScale scale{params.local_connectivity, detail::weight_of_row(params, edges.columns),
                                   mean_distance(edges, team)};
    team.for_chunks(edges.n, 512, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            detail::weigh_row(own.values.data() + i * edges.k, edges.length_of(i), scale);
    });
    edges.low = std::numeric_limits<float>::denorm_min();  // a weight of 0 is none
    return join_directions(edges, detail::FuzzyRule{params.set_op_mix_ratio}, team);
}

}  // namespace gnnd::cpu
