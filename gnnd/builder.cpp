#include "gnnd/builder.h"

#include <algorithm>
#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/error.h"

#ifdef GNND_WITH_CUDA
#include "gnnd/cuda/backend.h"
#endif

namespace gnnd {
namespace {

/// What the entry points share: checks, the device, the memory.
struct Call {
    Call(const VectorView& vectors, const BuildParams& given, Resources* given_resources)
        : params(given), resources(detail::or_heap(given_resources)) {
        params.validate();
        detail::check_shape(vectors);
        params.device = detail::choose(given.device, &reason);
    }
    BuildParams params;  ///< with the device that was chosen
    Resources& resources;
    std::string reason;  ///< why `auto` took the CPU
};

BuildResult run_on_cpu(const VectorView& vectors, const KnnGraphView* initial, const Call& call,
                       const Callbacks& callbacks) {
    cpu::check_vectors(vectors, call.params.metric, call.params.threads, callbacks);
    BuildResult result = cpu::build(vectors, initial, call.params, callbacks, call.resources);
    result.stats.device_reason = call.reason;
    return result;
}

BuildResult run(const VectorView& vectors, const KnnGraphView* initial, const BuildParams& params,
                const Callbacks& callbacks, Resources* resources) {
    const Call call(vectors, params, resources);
#ifdef GNND_WITH_CUDA
    if (call.params.device.kind == Device::Kind::cuda) {
        BuildResult result;
        result.graph = KnnGraph(vectors.n, params.k, params.metric);
        result.stats = cuda::build(vectors, initial, call.params, callbacks, call.resources, result.graph.ids(),
                                   result.graph.distances());
        return result;
    }
#endif
    return run_on_cpu(vectors, initial, call, callbacks);
}

}  // namespace

BuildResult build(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks,
                  Resources* resources) {
    return run(vectors, nullptr, params, callbacks, resources);
}

BuildStats build_into(const VectorView& vectors, const BuildParams& params, std::int32_t* ids, float* distances,
                      const Callbacks& callbacks, Resources* resources) {
    if (ids == nullptr || distances == nullptr) throw InvalidArgument("build_into: the arrays are null pointers");
    const Call call(vectors, params, resources);
#ifdef GNND_WITH_CUDA
    if (call.params.device.kind == Device::Kind::cuda)
        return cuda::build(vectors, nullptr, call.params, callbacks, call.resources, ids, distances);
#endif
    detail::check_reach(call.params.device, {vectors.data, ids, distances});
    const BuildResult result = run_on_cpu(vectors, nullptr, call, callbacks);
    std::copy_n(result.graph.ids(), vectors.n * params.k, ids);
    std::copy_n(result.graph.distances(), vectors.n * params.k, distances);
    return result.stats;
}

MemoryPlan plan_memory([[maybe_unused]] const VectorView& vectors, const BuildParams& params) {
    params.validate();
    BuildParams here = params;
    here.device.kind = Device::Kind::cuda;
    here.device = detail::choose(here.device);
#ifdef GNND_WITH_CUDA
    return cuda::plan(vectors, here);
#else
    return {};
#endif
}

BuildResult refine(const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params,
                   const Callbacks& callbacks, Resources* resources) {
    if (graph.n != vectors.n || graph.metric != params.metric)
        throw InvalidArgument("refine: the graph has " + std::to_string(graph.n) + " objects under " +
                              std::string(name_of(graph.metric)) + ", the vectors " + std::to_string(vectors.n) +
                              " and the parameters " + std::string(name_of(params.metric)));
    detail::check_k(graph.k);
    detail::check_ids(graph.ids, graph.n * graph.k, -1, graph.n, "graph.ids");
    return run(vectors, &graph, params, callbacks, resources);
}

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, int k,
                         Metric metric, int threads, const Callbacks& callbacks) {
    detail::check_shape(vectors);
    detail::check_k(k);
    detail::check_ids(queries, count, 0, vectors.n, "queries");
    cpu::check_vectors(vectors, metric, threads, callbacks);
    return cpu::exact_neighbors(vectors, queries, count, k, metric, threads, callbacks, detail::or_heap(nullptr));
}

void pair_distances(const VectorView& vectors, Metric metric, const std::int32_t* a, const std::int32_t* b,
                    std::int64_t count, float* out) {
    detail::check_shape(vectors);
    detail::check_ids(a, count, 0, vectors.n, "a");
    detail::check_ids(b, count, -1, vectors.n, "b");
    cpu::pair_distances(vectors, metric, a, b, count, out, detail::or_heap(nullptr));
}

}  // namespace gnnd
