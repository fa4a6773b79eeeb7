// SPDX-License-Identifier: MIT
#include "gnnd/search_links.h"

#include <string>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/detail/checks.h"
#include "gnnd/device.h"

namespace gnnd {
namespace {

void check_params(const LinkParams& given) {
    detail::check_range("LinkParams", "degree", given.degree, 1, kMaxDegree);
    detail::check_range("LinkParams", "threads (0: all)", given.threads, 0, 4096);
}

/// The parameters with the device that is to run.
LinkParams resolve(const LinkParams& given) {
    check_params(given);
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

void check_graph(const char* who, const KnnGraphView& graph, const VectorView& vectors) {
    name_of(graph.metric);
    if (graph.n != vectors.n)
        throw InvalidArgument(std::string(who) + ": the graph has " + std::to_string(graph.n) +
                              " objects, the vectors " + std::to_string(vectors.n));
    detail::check_k(graph.k);
    if (graph.ids == nullptr || graph.distances == nullptr)
        throw InvalidArgument(std::string(who) + ": the graph's arrays are null pointers");
}

void check_rows(const KnnGraphView& graph, std::int64_t first, std::int64_t count) {
    detail::check_ids(graph.ids_of(first), count * graph.k, -1, graph.n, "graph.ids");
}

}  // namespace

void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& given, std::int32_t* links,
                  const Callbacks& callbacks, Resources* resources) {
    const LinkParams params = resolve(given);
    detail::check_shape(vectors);
    check_graph("search_links", graph, vectors);
    if (device_of(graph.ids) < 0) check_rows(graph, 0, graph.n);
    if (links == nullptr) throw InvalidArgument("search_links: links are a null pointer");
    detail::check_reach(params.device, {vectors.data, graph.ids, links});
    if (params.device.kind == Device::Kind::cuda)
        return cuda::search_links(vectors, graph, params, links, callbacks, detail::or_heap(resources));
    detail::check_reach(params.device, {graph.distances});
    cpu::search_links(vectors, graph, params, links, callbacks, detail::or_heap(resources));
}

void prune_rows(const VectorView& vectors, const KnnGraphView& graph, const std::int32_t* objects, std::int64_t count,
                const LinkParams& params, std::int32_t* links, const Callbacks& callbacks) {
    const Device cpu{Device::Kind::cpu, 0};
    check_params(params);
    detail::check_shape(vectors);
    detail::check_reach(cpu, {vectors.data, graph.ids, graph.distances, objects, links});
    if (count < 0) throw InvalidArgument("prune_rows: " + std::to_string(count) + " objects");
    if (count == 0) return;
    if (objects == nullptr || links == nullptr) throw InvalidArgument("prune_rows: objects or links are null pointers");
    check_graph("prune_rows", graph, vectors);
    detail::check_ids(objects, count, 0, vectors.n, "objects");
    for (std::int64_t i = 0; i < count; ++i) check_rows(graph, objects[i], 1);
    cpu::prune_rows(vectors, graph, objects, count, params, links, callbacks, detail::or_heap(nullptr));
}

}  // namespace gnnd
