// SPDX-License-Identifier: MIT
#include "gnnd/operations.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "gnnd/cpu/operations/edges.h"
#include "gnnd/cpu/operations/operations.h"
#include "gnnd/cuda/operations/operations.h"
#include "gnnd/detail/checks.h"
#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr std::string_view spell(GraphValues value) {
    switch (value) {
        case GraphValues::metric:
            return "metric";
        case GraphValues::distance:
            return "distance";
    }
    return {};
}

constexpr auto kGraphValues = name_table<GraphValues, spell>("values");

/// The device that is to run.
Device place_of(const KnnGraphView& graph, const Device& wanted) {
    detail::check_range("device", "index", wanted.index, 0, 4096);
    if (wanted.kind != Device::Kind::automatic) return detail::choose(wanted);
    const int place = graph.n > 0 ? device_of(graph.ids) : -1;
    return place < 0 ? Device{Device::Kind::cpu, 0} : Device{Device::Kind::cuda, place};
}

/// Copies a matrix to where it is to go.
CsrGraph moved(CsrGraph matrix, const CsrRoom& room) {
    const CsrSpan to = room(matrix.n, matrix.entries());
    detail::check_reach({Device::Kind::cpu, 0}, {to.indptr, to.indices, to.values});
    std::copy(matrix.indptr.begin(), matrix.indptr.end(), to.indptr);
    std::copy(matrix.indices.begin(), matrix.indices.end(), to.indices);
    std::copy(matrix.values.begin(), matrix.values.end(), to.values);
    return {matrix.n, Array<std::int64_t>{0}, {}, {}};
}

/// Runs the operation of one of the backends.
template <class Result, class Params>
Result run(const KnnGraphView& graph, Params params, const Callbacks& callbacks, Resources* resources,
           Result (*on_cpu)(const KnnGraphView&, const Params&, const Callbacks&),
           Result (*on_gpu)(const KnnGraphView&, const Params&, const Callbacks&, Resources&)) {
    params.device = place_of(graph, params.device);
    // Of no rows there is nothing to do but to check the rest.
    if (params.device.kind == Device::Kind::cpu || graph.n <= 0) {
        if constexpr (std::is_same_v<Result, CsrGraph>)
            if (params.room) return moved(on_cpu(graph, params, callbacks), params.room);
        return on_cpu(graph, params, callbacks);
    }
    return on_gpu(graph, params, callbacks, detail::or_heap(resources));
}

}  // namespace

CsrGraph neighbors_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                         Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::neighbors_graph, cuda::neighbors_graph);
}

std::int64_t full_rows(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                       Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::full_rows, cuda::full_rows);
}

CsrGraph symmetric_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                         Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::symmetric_graph, cuda::symmetric_graph);
}

CsrGraph mutual_graph(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                      Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::mutual_graph, cuda::mutual_graph);
}

CsrGraph jaccard_graph(const KnnGraphView& graph, const JaccardParams& params, const Callbacks& callbacks,
                       Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::jaccard_graph, cuda::jaccard_graph);
}

CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params, const Callbacks& callbacks,
                              Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::fuzzy_simplicial_set, cuda::fuzzy_simplicial_set);
}

Array<float> core_distances(const KnnGraphView& graph, const ReachabilityParams& params, const Callbacks& callbacks,
                            Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::core_distances, cuda::core_distances);
}

CsrGraph mutual_reachability_graph(const KnnGraphView& graph, const ReachabilityParams& params,
                                   const Callbacks& callbacks, Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::mutual_reachability_graph, cuda::mutual_reachability_graph);
}

Components connected_components(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                                Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::connected_components, cuda::connected_components);
}

Duplicates duplicates(const KnnGraphView& graph, const DuplicateParams& params, const Callbacks& callbacks,
                      Resources* resources) {
    return run(graph, params, callbacks, resources, cpu::duplicates, cuda::duplicates);
}

std::string_view name_of(GraphValues values) {
    return kGraphValues.name_of(values);
}

GraphValues parse_graph_values(std::string_view name) {
    return kGraphValues.parse(name);
}

void true_distances(Metric metric, const float* values, std::int64_t count, float* out, int threads) {
    cpu::convert_to_distances("true_distances", metric, values, count, 0, out, cpu::team_of(threads, nullptr));
}

}  // namespace gnnd
