// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include "gnnd/cuda/all_pairs/exact_lists.h"
#include "gnnd/cuda/all_pairs/exhaustive.h"
#include "gnnd/cuda/all_pairs/in_parts.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/build.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "gnnd/detail/fold.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

PartsPlan plan_two(const detail::Input& input, const BuildParams& params, std::int64_t rows) {
    const detail::Input two{{{nullptr, 2 * rows, input.d(), input.dtype(), 0}, {}}, {}};
    PartsPlan plan;
    plan.rows = rows;
    plan.vectors = SweptSet::bytes(two, false, params.metric);
    plan.graph = ExactLists(two.n(), params.k, false).total;
    plan.total = plan.vectors + plan.graph + Sweep::bytes_of_all(SweptSet::shape(two, false, params.metric), params.k);
    return plan;
}

/// Some rows of the whole.
struct PartOfSet {
    VectorView vectors;
    std::int64_t first;  ///< the number of its first object in the whole
    KnnGraph graph{};    ///< its own, of its own numbers
};

/// No part lies across the border of two sets.
std::vector<PartOfSet> divide(const detail::Input& input, std::int64_t rows) {
    std::vector<PartOfSet> parts;
    std::int64_t first = 0;
    for (const VectorView& set : input.vectors) {
        const std::int64_t count = (set.n + rows - 1) / rows;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t begin = set.n * i / count, end = set.n * (i + 1) / count;
            parts.push_back({{set.row(begin), end - begin, set.d, set.dtype, set.stride}, first + begin});
        }
        first += set.n;
    }
    return parts;
}

/// The exact graph of both parts from the exact graphs of each, which it holds before, one behind the other.
void compare_across(const detail::Input& both, KnnGraph& graph, const BuildParams& params, const Callbacks& callbacks,
                    Resources& resources) {
    if (both.n() <= kMostOnHost)
        return run_exhaustively(both, params, callbacks, resources, graph.ids(), graph.distances());
    const OwnedStream stream(resources);
    const ExactLists layout(both.n(), params.k, false);
    const DeviceMemory memory(resources, layout.total, stream);
    const Lists lists = layout.in(memory.data());
    const SweptSet set(both, params.metric, resources, stream);
    const std::size_t row = std::size_t(params.k) * 4;
    copy_in(lists.ids, graph.ids(), both.n(), row, row, resources, stream);
    copy_in(lists.distances, graph.distances(), both.n(), row, row, resources, stream);
    open_graph(params.metric, lists, both.n(), stream);
    SweepSpace space = set.space();
    space.border = u32(both.vectors[0].n);
    Sweep(space, params.k, resources, stream).make_exact(lists, {}, callbacks);
    close_graph(params.metric, lists, both.n(), stream);
    copy_graph_out(graph.ids(), graph.distances(), lists.ids, lists.distances, both.n() * params.k, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
}

/// Rows [begin, begin + count) of what two parts found, the objects of one of them.
KnnGraphView rows_of(const KnnGraph& graph, std::int64_t begin, std::int64_t count) {
    return {count, graph.k(), graph.metric(), graph.ids_of(begin), graph.distances_of(begin)};
}

}  // namespace

PartsPlan plan_parts(const detail::Input& input, const BuildParams& params, std::size_t free,
                     const std::function<std::size_t(const detail::Input&)>& alone) {
    const MemoryLimits limits{std::size_t(params.device_memory), free};
    for (int count = 2;; count += std::max(1, count / 8)) {
        const std::int64_t rows = (input.n() + count - 1) / count;
        PartsPlan plan = plan_two(input, params, rows);
        const bool last = rows <= kMostOnHost;
        try {
            limits.check("comparing all pairs in parts", plan.total);
            plan.total = std::max(plan.total, alone({{{nullptr, rows, input.d(), input.dtype(), 0}, {}}, {}}));
            for (const VectorView& set : input.vectors) plan.count += int((set.n + rows - 1) / rows);
            return plan;
        } catch (const OutOfDeviceMemory&) {
            if (last) throw;
        }
    }
}

void compare_in_parts(const detail::Input& input, const PartsPlan& plan, const BuildParams& params,
                      const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances,
                      BuildStats& stats) {
    const std::int64_t n = input.n(), k = params.k;
    const bool there = on_device(ids);
    KnnGraph here(there ? n : 0, k, params.metric);
    std::int32_t* const all_ids = there ? here.ids() : ids;
    float* const all_distances = there ? here.distances() : distances;

    std::vector<PartOfSet> parts = divide(input, plan.rows);
    for (PartOfSet& part : parts) {
        detail::Input alone{{part.vectors, {}}, {}};
        alone.exact = true;
        alone.first = part.first;
        part.graph = KnnGraph(part.vectors.n, k, params.metric);
        build(alone, params, detail::resolve(params, alone, params.device), callbacks, resources, part.graph.ids(),
              part.graph.distances(), stats);
        detail::put_rows(part.graph, part.first, all_ids + part.first * k, all_distances + part.first * k,
                         params.threads);
    }
    for (std::size_t j = 1; j < parts.size(); ++j)
        for (std::size_t i = 0; i < j; ++i) {
            const PartOfSet &a = parts[i], &b = parts[j];
            const std::int64_t n1 = a.vectors.n, n2 = b.vectors.n;
            KnnGraph both(n1 + n2, k, params.metric);
            detail::put_rows(a.graph, 0, both.ids(), both.distances(), params.threads);
            detail::put_rows(b.graph, n1, both.ids() + n1 * k, both.distances() + n1 * k, params.threads);
            compare_across({{a.vectors, b.vectors}, {}}, both, params, callbacks, resources);
            detail::fold(rows_of(both, 0, n1), {std::int32_t(n1), std::int32_t(n1 + n2), b.first}, k,
                         all_ids + a.first * k, all_distances + a.first * k, params.threads);
            detail::fold(rows_of(both, n1, n2), {0, std::int32_t(n1), a.first}, k, all_ids + b.first * k,
                         all_distances + b.first * k, params.threads);
        }
    if (there) {
        const std::size_t bytes = std::size_t(n) * std::size_t(k) * 4;
        GNND_CUDA(cudaMemcpy(ids, all_ids, bytes, cudaMemcpyHostToDevice));
        GNND_CUDA(cudaMemcpy(distances, all_distances, bytes, cudaMemcpyHostToDevice));
    }
    stats.stop = StopReason::exact;
    stats.peak_work_bytes = std::int64_t(plan.total - plan.vectors - plan.graph);
}

}  // namespace gnnd::cuda
