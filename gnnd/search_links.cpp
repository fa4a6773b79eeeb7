// SPDX-License-Identifier: MIT
#include "gnnd/search_links.h"

#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/device.h"

namespace gnnd {
namespace {

/// The parameters with the device that is to run.
LinkParams resolve(const LinkParams& given) {
    detail::check_range("LinkParams", "degree", given.degree, 1, kMaxDegree);
    detail::check_range("LinkParams", "threads (0: all)", given.threads, 0, 4096);
    detail::check_range("LinkParams", "device.index", given.device.index, 0, 4096);
    LinkParams params = given;
    const bool too_many = params.degree > kMaxGpuDegree;
    if (too_many && params.device.kind == Device::Kind::automatic) params.device.kind = Device::Kind::cpu;
    params.device = detail::choose(params.device);
    if (too_many && params.device.kind == Device::Kind::cuda)
        throw InvalidArgument("LinkParams::degree = " + std::to_string(params.degree) + ", on a GPU allowed are 1 to " +
                              std::to_string(kMaxGpuDegree));
    return params;
}

void check_graph(const KnnGraphView& graph, const VectorView& vectors) {
    name_of(graph.metric);
    if (graph.n != vectors.n)
        throw InvalidArgument("search_links: the graph has " + std::to_string(graph.n) + " objects, the vectors " +
                              std::to_string(vectors.n));
    detail::check_k(graph.k);
    if (graph.ids == nullptr || graph.distances == nullptr)
        throw InvalidArgument("search_links: the graph's arrays are null pointers");
    if (device_of(graph.ids) < 0) detail::check_ids(graph.ids, graph.n * graph.k, -1, graph.n, "graph.ids");
}

}  // namespace

void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& given, std::int32_t* links,
                  const Callbacks& callbacks, Resources* resources) {
    const LinkParams params = resolve(given);
    detail::check_shape(vectors);
    check_graph(graph, vectors);
    if (links == nullptr) throw InvalidArgument("search_links: links are a null pointer");
    detail::check_reach(params.device, {vectors.data, graph.ids, links});
    if (params.device.kind == Device::Kind::cuda)
        return cuda::search_links(vectors, graph, params, links, callbacks, detail::or_heap(resources));
    detail::check_reach(params.device, {graph.distances});
    cpu::search_links(vectors, graph, params, links, callbacks, detail::or_heap(resources));
}

}  // namespace gnnd
