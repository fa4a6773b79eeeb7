#include "gnnd/builder.h"

#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/error.h"

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

BuildResult run(const VectorView& vectors, const KnnGraphView* initial, const BuildParams& params,
                const Callbacks& callbacks, Resources* resources) {
    params.validate();
    check_shape(vectors);
    if (params.device.kind == Device::Kind::cuda)
        throw Unavailable("device " + params.device.name() + ": this build of gnnd has no CUDA backend");
    cpu::check_vectors(vectors, params.metric, params.threads, callbacks);
    return cpu::build(vectors, initial, params, callbacks, resources != nullptr ? *resources : heap);
}

}  // namespace

BuildResult build(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks,
                  Resources* resources) {
    return run(vectors, nullptr, params, callbacks, resources);
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
