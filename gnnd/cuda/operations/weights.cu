// SPDX-License-Identifier: MIT
// Weights of pairs: shared neighbours, UMAP's, HDBSCAN's. In the order in which the CPU computes them, and without
// fused multiply-adds, which CMakeLists.txt turns off here, so that they have the CPU's bits.
#include <limits>
#include <vector>

#include "gnnd/cuda/operations/join.cuh"
#include "gnnd/cuda/operations/operations.h"
#include "gnnd/detail/fuzzy_row.h"

namespace gnnd::cuda {
namespace {

/// A warp a row: the Jaccard index of it and each of the rows that it names, 0 behind its end.
/// \param sets, lengths  of SortedRows: all entries
/// \param weights  n x k, written
__global__ void __launch_bounds__(kRowThreads)
    jaccard_kernel(Edges edges, bool with_self, const EdgeKey* sets, const std::int64_t* lengths, float* weights) {
    const std::int64_t i = warp_number();
    if (i >= edges.n) return;
    const EdgeKey* set = sets + i * edges.columns;
    const std::int64_t own = lengths[i];
    for (std::int64_t j = 0; j < edges.columns; ++j) {
        float weight = 0;
        if (j < own) {
            const std::int32_t other = edges.ids_of(i)[j];
            const std::int32_t* ids = edges.ids_of(other);
            const auto length = int(lengths[other]);
            int shared = 0;
            for (int c = lane_id(); c < length; c += kWarp) {
                const std::int64_t place = smaller_ones(set, own, ids[c]);
                shared += int((with_self && ids[c] == i) || (place < own && key_id(set[place]) == ids[c]));
            }
            // The other one is in its own row then, and in the set in any case.
            shared = warp_sum(shared) + int(with_self);
            weight = float(shared) / float(own + length + 2 * int(with_self) - shared);
        }
        if (lane_id() == 0) weights[i * edges.k + j] = weight;
    }
}

/// A thread a row: the sum of its distances, and how many there are.
/// \param sums, counts  n, written
__global__ void __launch_bounds__(kRowThreads) sum_rows_kernel(Edges edges, double* sums, std::int64_t* counts) {
    const std::int64_t i = thread_number();
    if (i >= edges.n) return;
    const int length = edges.length_of(i);
    sums[i] = detail::sum_of_row(edges.values_of(i), length);
    counts[i] = length + 1;
}

/// A thread for kSummedRows rows: their sums one after the other, as the CPU adds them.
/// \param sums, counts  n
/// \param sum, count    one for kSummedRows rows, written
__global__ void __launch_bounds__(kRowThreads)
    sum_up_kernel(const double* sums, const std::int64_t* counts, std::int64_t n, double* sum, std::int64_t* count) {
    const std::int64_t part = thread_number(), begin = part * detail::kSummedRows;
    if (begin >= n) return;
    const std::int64_t end = begin + detail::kSummedRows < n ? begin + detail::kSummedRows : n;
    double total = 0;
    std::int64_t number = 0;
    for (std::int64_t i = begin; i < end; ++i) total += sums[i], number += counts[i];
    sum[part] = total;
    count[part] = number;
}

/// A thread a row: its distances become weights.
/// \param values  n x k
__global__ void __launch_bounds__(kRowThreads) fuzzy_kernel(Edges edges, detail::FuzzyScale scale, float* values) {
    const std::int64_t i = thread_number();
    if (i < edges.n) detail::weigh_row(values + i * edges.k, edges.length_of(i), scale);
}

/// A thread a row.
/// \param cores  n, written
__global__ void __launch_bounds__(kRowThreads) cores_kernel(Edges edges, int min_samples, float* cores) {
    const std::int64_t i = thread_number();
    if (i >= edges.n) return;
    const int length = edges.length_of(i), place = (min_samples < length ? min_samples : length) - 1;
    cores[i] = place < 0 ? INFINITY : edges.values_of(i)[place];
}

/// A thread an entry of the first columns.
/// \param cores   n
/// \param values  n x k
__global__ void __launch_bounds__(kRowThreads)
    reach_kernel(Edges edges, const float* cores, float alpha, float* values) {
    const std::int64_t e = thread_number(), i = e / edges.columns, j = e - i * edges.columns;
    if (i >= edges.n || edges.ids_of(i)[j] < 0) return;
    const float own = cores[i], other = cores[edges.ids_of(i)[j]], core = own < other ? other : own;
    const float distance = values[i * edges.k + j] / alpha;
    values[i * edges.k + j] = distance < core ? core : distance;
}

/// See FuzzyScale.
double mean_distance(const Edges& edges, Work& work) {
    const std::int64_t parts = (edges.n + detail::kSummedRows - 1) / detail::kSummedRows;
    const DeviceArray<double> sums(work, edges.n), sum(work, parts);
    const DeviceArray<std::int64_t> counts(work, edges.n), count(work, parts);
    launch_threads("sum_rows_kernel", sum_rows_kernel, edges.n, work.stream, edges, sums.get(), counts.get());
    launch_threads("sum_up_kernel", sum_up_kernel, parts, work.stream, sums.get(), counts.get(), edges.n, sum.get(),
                   count.get());
    std::vector<double> part_sums(static_cast<std::size_t>(parts));
    std::vector<std::int64_t> part_counts(part_sums.size());
    work.read(part_sums.data(), sum.get(), parts);
    work.read(part_counts.data(), count.get(), parts);
    double total = 0;
    std::int64_t number = 0;
    for (std::size_t p = 0; p < part_sums.size(); ++p) total += part_sums[p], number += part_counts[p];
    return total / double(number);
}

DeviceEdges distances_of(const char* who, const KnnGraphView& graph, const ReachabilityParams& params, Work& work) {
    DeviceEdges own(who, graph, EdgeParams{params.neighbors, GraphValues::distance, {}, 0, {}}, work);
    detail::check_params(params, own.edges);
    return own;
}

DeviceArray<float> cores_of(const Edges& edges, int min_samples, Work& work) {
    DeviceArray<float> cores(work, edges.n);
    launch_threads("cores_kernel", cores_kernel, edges.n, work.stream, edges, min_samples, cores.get());
    return cores;
}

}  // namespace

CsrGraph jaccard_graph(const KnnGraphView& graph, const JaccardParams& params, const Callbacks& callbacks,
                       Resources& resources) {
    detail::check_params(params);
    Work work(params.device, callbacks, resources);
    const DeviceEdges own("jaccard_graph", graph, params.neighbors, work);
    Edges edges = own.edges;
    const DeviceArray<float> weights(work, places_of(edges));
    {
        const SortedRows sets(edges, false, work);
        launch_warps("jaccard_kernel", jaccard_kernel, edges.n, work.stream, edges, params.include_self,
                     sets.keys.get(), sets.lengths.get(), weights.get());
    }
    edges.values = weights;
    edges.low = detail::least_weight(params);
    return join_directions(edges, detail::Nearer<true, true>(), params.room, work);
}

CsrGraph fuzzy_simplicial_set(const KnnGraphView& graph, const FuzzyParams& params, const Callbacks& callbacks,
                              Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own("fuzzy_simplicial_set", graph, EdgeParams{params.neighbors, GraphValues::distance, {}, 0, {}},
                          work);
    Edges edges = own.edges;
    detail::check_params(params, edges);
    const detail::FuzzyScale scale{params.local_connectivity, detail::weight_of_row(params, edges.columns),
                                   mean_distance(edges, work)};
    launch_threads("fuzzy_kernel", fuzzy_kernel, edges.n, work.stream, edges, scale, own.own_values());
    edges.low = std::numeric_limits<float>::denorm_min();  // a weight of 0 is none
    return join_directions(edges, detail::FuzzyRule{params.set_op_mix_ratio}, params.room, work);
}

Array<float> core_distances(const KnnGraphView& graph, const ReachabilityParams& params, const Callbacks& callbacks,
                            Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own = distances_of("core_distances", graph, params, work);
    const DeviceArray<float> cores = cores_of(own.edges, params.min_samples, work);
    Array<float> read(static_cast<std::size_t>(graph.n));
    work.read(read.data(), cores.get(), graph.n);
    return read;
}

CsrGraph mutual_reachability_graph(const KnnGraphView& graph, const ReachabilityParams& params,
                                   const Callbacks& callbacks, Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own = distances_of("mutual_reachability_graph", graph, params, work);
    Edges edges = own.edges;
    const DeviceArray<float> cores = cores_of(edges, params.min_samples, work);
    launch_threads("reach_kernel", reach_kernel, edges.n * edges.columns, work.stream, edges, cores.get(), params.alpha,
                   own.own_values());
    edges.high = std::numeric_limits<float>::max();
    return join_directions(edges, detail::Nearer<true, false>(), params.room, work);
}

}  // namespace gnnd::cuda
