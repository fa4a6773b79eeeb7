// SPDX-License-Identifier: MIT
// The exact neighbours of chosen objects on a GPU.
#include <algorithm>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/exhaustive.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "gnnd/cuda/wait.h"

namespace gnnd::cuda {

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& params, const Callbacks& callbacks, Resources& resources) {
    constexpr std::int64_t kMostAtOnce = 8192, kLeastAtOnce = 256;
    const UseDevice device(params.device.index);
    const detail::Input input{{vectors}, {}};
    const OwnedStream stream(resources);
    GNND_CUDA(cudaStreamSynchronize(stream));  // what the caller's stream still writes
    if (vectors.n <= kMostOnHost) return compare_on_host(input, queries, count, params, callbacks, resources);

    const bool in_place = on_device(vectors.data);
    const std::size_t of_set = SweptSet::bytes(input, in_place, params.metric);
    const MemoryLimits limits{std::size_t(params.device_memory), resources.free_device_memory()};
    std::int64_t at_once = 0;
    std::size_t bytes = 0;
    lay_out_to_fit(
        std::min(count, kMostAtOnce), kLeastAtOnce,
        [&](std::int64_t objects) {
            at_once = objects;
            bytes =
                of_set + Sweep::bytes_of_some(SweptSet::shape(input, in_place, params.metric), u32(objects), params.k);
        },
        [&] { return limits.hold(bytes); }, [](std::int64_t objects) { return objects / 2; });
    limits.check("exact_neighbors", bytes);

    KnnGraph graph(count, params.k, params.metric);
    const SweptSet set(input, params.metric, resources, stream);
    set.check();
    Sweep sweep(set.space(), params.k, resources, stream);
    for (std::int64_t begin = 0; begin < count; begin += at_once) {
        const std::int64_t rows = std::min(at_once, count - begin), first = begin * params.k;
        const Lists found = sweep.nearest_of(queries + begin, u32(rows), nullptr, 0, 0);
        close_graph(params.metric, found, rows, stream);
        copy_graph_out(graph.ids() + first, graph.distances() + first, found.ids, found.distances, rows * params.k,
                       resources, stream);
        await(stream, callbacks);
    }
    GNND_CUDA(cudaStreamSynchronize(stream));
    return graph;
}

}  // namespace gnnd::cuda
