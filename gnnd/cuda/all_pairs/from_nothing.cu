// SPDX-License-Identifier: MIT
#include <algorithm>

#include "gnnd/cuda/all_pairs/exact_lists.h"
#include "gnnd/cuda/all_pairs/from_nothing.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"

namespace gnnd::cuda {
bool may_compare_from_nothing(const detail::Input& input, const BuildParams& params) {
    if (input.merges() || input.refines()) return false;  // what they bring is better than bounds from a sample
    return Sweep::may_find_exact(SweptSet::shape(input, false, params.metric), params.k);
}

ExactPlan plan_from_nothing(const detail::Input& input, bool vectors_there, bool result_there,
                            const BuildParams& params, std::size_t free) {
    ExactPlan plan;
    plan.vectors = SweptSet::bytes(input, vectors_there, params.metric);
    plan.graph = ExactLists(input.n(), params.k, result_there).total;
    plan.total = plan.vectors + plan.graph +
                 Sweep::bytes_from_sample(SweptSet::shape(input, vectors_there, params.metric), params.k);
    MemoryLimits{std::size_t(params.device_memory), free}.check("comparing all pairs", plan.total);
    return plan;
}

bool compare_from_nothing(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                          Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats) {
    const std::int64_t n = input.n();
    const bool there = on_device(ids);
    const bool in_place = on_device(input.vectors[0].data) && input.adjoining();
    const std::size_t free = resources.free_device_memory();
    const ExactPlan plan = plan_from_nothing(input, in_place, there, params, free);
    const OwnedStream stream(resources);
    const ExactLists layout(n, params.k, there);
    const DeviceMemory memory(resources, layout.total, stream);
    const Drain drain(stream);
    Lists lists = layout.in(memory.data());
    if (there) {
        lists.ids = reinterpret_cast<u32*>(ids);
        lists.distances = distances;
    }
    const SweptSet set(input, params.metric, resources, stream);
    set.check(n);
    SweepSpace space = set.space();
    space.spare = std::min(bytes_left(free, plan.total), bytes_left(std::size_t(params.device_memory), plan.total));
    if (!Sweep(space, params.k, resources, stream).find_exact(lists, callbacks)) return false;
    close_graph(params.metric, lists, n, stream);
    if (!there) copy_graph_out(ids, distances, lists.ids, lists.distances, n * params.k, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    stats.stop = StopReason::exact;
    stats.peak_work_bytes = std::int64_t(plan.total - plan.vectors - plan.graph);
    return true;
}

}  // namespace gnnd::cuda
