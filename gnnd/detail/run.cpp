#include "gnnd/detail/run.h"

#include <algorithm>
#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/device.h"
#include "gnnd/error.h"

#ifdef GNND_WITH_CUDA
#include "gnnd/cuda/backend.h"
#endif

namespace gnnd::detail {
namespace {

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
    BuildParams params;  ///< with the device that was chosen
    Resources& resources;
    std::string reason;  ///< why `auto` took the CPU
};

BuildResult run_on_cpu(const Input& input, const Call& call, const Callbacks& callbacks) {
    BuildResult result = cpu::run(input, call.params, callbacks, call.resources);
    result.stats.device_reason = call.reason;
    return result;
}

}  // namespace

BuildResult run(const Input& input, const BuildParams& params, const Callbacks& callbacks, Resources* resources) {
    const Call call(input, params, resources);
#ifdef GNND_WITH_CUDA
    if (call.params.device.kind == Device::Kind::cuda) {
        BuildResult result;
        result.graph = KnnGraph(input.n(), params.k, params.metric);
        result.stats =
            cuda::run(input, call.params, callbacks, call.resources, result.graph.ids(), result.graph.distances());
        return result;
    }
#endif
    return run_on_cpu(input, call, callbacks);
}

BuildStats run_into(const char* who, const Input& input, const BuildParams& params, std::int32_t* ids, float* distances,
                    const Callbacks& callbacks, Resources* resources) {
    if (ids == nullptr || distances == nullptr)
        throw InvalidArgument(std::string(who) + ": the arrays are null pointers");
    const Call call(input, params, resources);
#ifdef GNND_WITH_CUDA
    if (call.params.device.kind == Device::Kind::cuda)
        return cuda::run(input, call.params, callbacks, call.resources, ids, distances);
#endif
    check_reach(call.params.device, {input.vectors[0].data, input.vectors[1].data, ids, distances});
    const BuildResult result = run_on_cpu(input, call, callbacks);
    std::copy_n(result.graph.ids(), input.n() * params.k, ids);
    std::copy_n(result.graph.distances(), input.n() * params.k, distances);
    return result.stats;
}

}  // namespace gnnd::detail
