// SPDX-License-Identifier: MIT
#include "gnnd/builder.h"

#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"

namespace gnnd {

BuildResult build(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks,
                  Resources* resources) {
    return detail::run({{vectors}, {}}, params, callbacks, resources);
}

BuildStats build_into(const VectorView& vectors, const BuildParams& params, std::int32_t* ids, float* distances,
                      const Callbacks& callbacks, Resources* resources) {
    return detail::run_into("build_into", {{vectors}, {}}, params, ids, distances, callbacks, resources);
}

namespace {

detail::Input all_pairs_of(const VectorView& vectors) {
    detail::Input input{{vectors}, {}};
    input.exact = true;
    return input;
}

}  // namespace

BuildResult build_exact(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks,
                        Resources* resources) {
    return detail::run(all_pairs_of(vectors), params, callbacks, resources);
}

BuildStats build_exact_into(const VectorView& vectors, const BuildParams& params, std::int32_t* ids, float* distances,
                            const Callbacks& callbacks, Resources* resources) {
    return detail::run_into("build_exact_into", all_pairs_of(vectors), params, ids, distances, callbacks, resources);
}

MemoryPlan plan_memory(const VectorView& vectors, const BuildParams& params) {
    detail::check_dimensions(vectors);
    return detail::plan({{vectors}, {}}, params);
}

BuildResult refine(const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params,
                   const Callbacks& callbacks, Resources* resources) {
    if (graph.n != vectors.n || graph.metric != params.metric)
        throw InvalidArgument("refine: the graph has " + std::to_string(graph.n) + " objects under " +
                              std::string(name_of(graph.metric)) + ", the vectors " + std::to_string(vectors.n) +
                              " under " + std::string(name_of(params.metric)));
    if (graph.ids == nullptr) throw InvalidArgument("refine: the graph's ids are a null pointer");
    return detail::run({{vectors}, {graph}}, params, callbacks, resources);
}

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& given, const Callbacks& callbacks, Resources* resources) {
    BuildParams params = given;
    params.recall_at = 0;  // it says nothing here
    params.validate();
    detail::check_shape(vectors);
    detail::check_ids(queries, count, 0, vectors.n, "queries");
    params.device = detail::choose(params.device);
    detail::check_reach(params.device, {vectors.data});
    if (params.device.kind == Device::Kind::cuda)
        return cuda::exact_neighbors(vectors, queries, count, params, callbacks, detail::or_heap(resources));
    cpu::check_vectors(vectors, params.metric, params.threads, callbacks);
    return cpu::exact_neighbors(vectors, queries, count, params.k, params.metric, params.threads, callbacks,
                                detail::or_heap(resources));
}

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, int k,
                         Metric metric, int threads, const Callbacks& callbacks) {
    BuildParams params;
    params.k = k;
    params.metric = metric;
    params.threads = threads;
    params.device = {Device::Kind::cpu, 0};
    return exact_neighbors(vectors, queries, count, params, callbacks);
}

void pair_distances(const VectorView& vectors, Metric metric, const std::int32_t* a, const std::int32_t* b,
                    std::int64_t count, float* out) {
    detail::check_shape(vectors);
    detail::check_ids(a, count, 0, vectors.n, "a");
    detail::check_ids(b, count, -1, vectors.n, "b");
    cpu::pair_distances(vectors, metric, a, b, count, out, detail::or_heap(nullptr));
}

}  // namespace gnnd
