// SPDX-License-Identifier: MIT
#include "gnnd/detail/run.h"

#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/detail/unresolved.h"
#include "gnnd/device.h"
#include "gnnd/error.h"

namespace gnnd::detail {
namespace {

/// A call whose arguments are checked.
struct Call {
    Call(const Input& input, const BuildParams& given, Resources* given_resources)
        : params(given), resources(or_heap(given_resources)) {
        params.validate();
        VectorView all = input.vectors[0];
        all.n = input.n();
        check_shape(all);
        params.device = choose(given.device, &reason);
        for (const KnnGraphView& graph : input.graphs) {
            if (graph.ids == nullptr) continue;
            check_k(graph.k);
            check_reach(params.device, {graph.ids, graph.distances});
            if (device_of(graph.ids) < 0) check_ids(graph.ids, graph.n * graph.k, -1, graph.n, "graph.ids");
        }
    }

    BuildStats run(const Input& input, const Callbacks& callbacks, std::int32_t* ids, float* distances) const {
        BuildStats stats = run_checked(input, params, callbacks, resources, ids, distances);
        stats.device_reason = reason;
        if (stats.stop == StopReason::exact) {
            stats.recall = {1, 1, 1, recall_at_of(params), input.n()};
            stats.recall_all = {};
        }
        stats.unresolved = unresolved_share({input.n(), params.k, params.metric, ids, distances}, nullptr,
                                            recall_at_of(params), input);
        return stats;
    }

    BuildParams params;  ///< with the device that was chosen
    Resources& resources;
    std::string reason;  ///< why `auto` took the CPU
};

}  // namespace

BuildStats run_checked(const Input& input, const BuildParams& params, const Callbacks& callbacks, Resources& resources,
                       std::int32_t* ids, float* distances) {
    const Choices choices = resolve(params, input, params.device);
    const bool gpu = params.device.kind == Device::Kind::cuda;
    return (gpu ? cuda::run : cpu::run)(input, params, choices, callbacks, resources, ids, distances);
}

KnnGraph nearest_of(const VectorView& vectors, const VectorView& sample, const std::int32_t* selves, int k,
                    const BuildParams& params, const Callbacks& callbacks, Resources& resources) {
    if (params.device.kind == Device::Kind::cuda)
        return cuda::nearest_of(vectors, sample, selves, k, params.metric, params.device.index, resources);
    return cpu::nearest_of(vectors, sample, selves, k, params.metric, params.threads, callbacks, resources);
}

MemoryPlan plan(const Input& input, const BuildParams& params) {
    params.validate();
    BuildParams here = params;
    here.device = choose(params.device);
    const Choices choices = resolve(here, input, here.device);
    MemoryPlan plan = (here.device.kind == Device::Kind::cuda ? cuda::plan : cpu::plan)(input, here, choices);
    plan.device = here.device;
    return plan;
}

BuildResult run(const Input& input, const BuildParams& params, const Callbacks& callbacks, Resources* resources) {
    const Call call(input, params, resources);
    BuildResult result;
    result.graph = KnnGraph(input.n(), params.k, params.metric);
    result.stats = call.run(input, callbacks, result.graph.ids(), result.graph.distances());
    return result;
}

BuildStats run_into(const char* who, const Input& input, const BuildParams& params, std::int32_t* ids, float* distances,
                    const Callbacks& callbacks, Resources* resources) {
    const Call call(input, params, resources);  // first, since arrays of k = 0 may be null pointers
    if (ids == nullptr || distances == nullptr)
        throw InvalidArgument(std::string(who) + ": the arrays are null pointers");
    check_reach(call.params.device, {input.vectors[0].data, input.vectors[1].data, ids, distances});
    return call.run(input, callbacks, ids, distances);
}

}  // namespace gnnd::detail
