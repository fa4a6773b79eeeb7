// SPDX-License-Identifier: MIT
// The nearest that vectors from elsewhere have in a set: these stand behind the set's own, and are rows of a sweep
// only.
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/all_pairs/nearest_of.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"

namespace gnnd::cuda {

std::size_t bytes_of_nearest_of(const VectorView& vectors, std::int64_t sample, int k, Metric metric) {
    VectorView behind = vectors;
    behind.n = sample;
    const detail::Input input{{vectors, behind}, {}};
    return SweptSet::bytes(input, false, metric) +
           Sweep::bytes_of_some(SweptSet::shape(input, false, metric), u32(sample), k);
}

KnnGraph nearest_of(const VectorView& vectors, const VectorView& sample, const std::int32_t* selves, int k,
                    Metric metric, int device, Resources& resources, std::int64_t first) {
    const UseDevice use(device);
    const OwnedStream stream(resources);
    // One that is in the set is the object there, so that it is not compared with itself.
    std::vector<std::int32_t> objects(selves, selves + sample.n);
    for (std::int64_t i = 0; i < sample.n; ++i)
        if (objects[i] < 0) objects[i] = std::int32_t(vectors.n + i);

    detail::Input input{{vectors, sample}, {}};
    input.first = first;
    const SweptSet set(input, metric, resources, stream);
    set.check(vectors.n);
    SweepSpace space = set.space();
    space.columns = vectors.n;
    Sweep sweep(space, k, resources, stream);
    const Lists nearest = sweep.nearest_of(objects.data(), u32(sample.n), nullptr, 0, 0);
    close_graph(metric, nearest, sample.n, stream);
    make_ids_plain(nearest, sample.n, stream);  // a small set has fewer
    KnnGraph graph(sample.n, k, metric);
    copy_graph_out(graph.ids(), graph.distances(), nearest.ids, nearest.distances, sample.n * k, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    return graph;
}

}  // namespace gnnd::cuda
