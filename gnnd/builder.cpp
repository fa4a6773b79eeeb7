#include "gnnd/builder.h"

#include <algorithm>
#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/error.h"

#ifdef GNND_WITH_CUDA
#include "gnnd/cuda/backend.h"
#endif

namespace gnnd {
namespace {

HeapResources heap;

void check_shape(const VectorView& vectors) {
    if (vectors.dtype == DType::i32) throw InvalidArgument("vectors of i32; allowed are f32, f16, u8 and i8");
    if (vectors.n < 2 || vectors.n > kMaxObjects)
        throw InvalidArgument(std::to_string(vectors.n) + " vectors; a graph needs 2 to " +
                              std::to_string(kMaxObjects));
    if (vectors.d < 1 || vectors.d > kMaxDim)
        throw InvalidArgument("vectors of dimension " + std::to_string(vectors.d) + "; allowed are 1 to " +
                              std::to_string(kMaxDim));
    if (vectors.data == nullptr) throw InvalidArgument("vectors are a null pointer");
    if (vectors.row_bytes() < vectors.d * std::int64_t(size_of(vectors.dtype)))
        throw InvalidArgument("VectorView::stride of " + std::to_string(vectors.stride) + " bytes is less than a row");
}

void check_k(int k) {
    if (k < 1 || k > kMaxK)
        throw InvalidArgument("k = " + std::to_string(k) + ", allowed are 1 to " + std::to_string(kMaxK));
}

void check_ids(const std::int32_t* ids, std::int64_t count, std::int32_t least, std::int64_t n, const char* what) {
    for (std::int64_t i = 0; i < count; ++i)
        if (ids[i] < least || ids[i] >= n)
            throw InvalidArgument(std::string(what) + "[" + std::to_string(i) + "] = " + std::to_string(ids[i]) +
                                  " is outside of [" + std::to_string(least) + ", " + std::to_string(n) + ")");
}

/// The GPU or the CPU. Where `auto` finds no GPU, `reason` says why.
Device choose(const BuildParams& params, std::string* reason = nullptr) {
    if (params.device.kind == Device::Kind::cpu) return params.device;
    std::string why = "this build of gnnd has no CUDA backend";
#ifdef GNND_WITH_CUDA
    if (cuda::usable(params.device.index, why)) return {Device::Kind::cuda, params.device.index};
#endif
    if (params.device.kind == Device::Kind::automatic) {
        if (reason != nullptr) *reason = why;
        return {Device::Kind::cpu, 0};
    }
    throw Unavailable("device " + params.device.name() + ": " + why);
}

/// What the entry points share: checks, the device, the memory.
struct Call {
    Call(const VectorView& vectors, const BuildParams& given, Resources* given_resources)
        : params(given), resources(given_resources != nullptr ? *given_resources : heap) {
        params.validate();
        check_shape(vectors);
        params.device = choose(given, &reason);
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
    if (cuda::on_device(vectors.data) || cuda::on_device(ids) || cuda::on_device(distances))
        throw InvalidArgument("device cpu cannot reach vectors or arrays in the memory of a GPU");
#endif
    const BuildResult result = run_on_cpu(vectors, nullptr, call, callbacks);
    std::copy_n(result.graph.ids(), vectors.n * params.k, ids);
    std::copy_n(result.graph.distances(), vectors.n * params.k, distances);
    return result.stats;
}

MemoryPlan plan_memory([[maybe_unused]] const VectorView& vectors, const BuildParams& params) {
    params.validate();
    BuildParams here = params;
    here.device.kind = Device::Kind::cuda;
    here.device = choose(here);
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
    check_k(int(graph.k));
    check_ids(graph.ids, graph.n * graph.k, -1, graph.n, "graph.ids");
    return run(vectors, &graph, params, callbacks, resources);
}

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, int k,
                         Metric metric, int threads, const Callbacks& callbacks) {
    check_shape(vectors);
    check_k(k);
    check_ids(queries, count, 0, vectors.n, "queries");
    cpu::check_vectors(vectors, metric, threads, callbacks);
    return cpu::exact_neighbors(vectors, queries, count, k, metric, threads, callbacks, heap);
}

void pair_distances(const VectorView& vectors, Metric metric, const std::int32_t* a, const std::int32_t* b,
                    std::int64_t count, float* out) {
    check_shape(vectors);
    check_ids(a, count, 0, vectors.n, "a");
    check_ids(b, count, -1, vectors.n, "b");
    cpu::pair_distances(vectors, metric, a, b, count, out, heap);
}

}  // namespace gnnd
