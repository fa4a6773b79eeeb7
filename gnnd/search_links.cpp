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

void check_gpu_degree(const LinkParams& params) {
    if (params.degree > kMaxGpuDegree)
        throw InvalidArgument("LinkParams::degree = " + std::to_string(params.degree) + ", on a GPU allowed are 1 to " +
                              std::to_string(kMaxGpuDegree));
}

/// The parameters with the device that is to run.
LinkParams resolve(const LinkParams& given) {
    check_params(given);
    detail::check_range("LinkParams", "device.index", given.device.index, 0, 4096);
    LinkParams params = given;
    const bool too_many = params.degree > kMaxGpuDegree;
    if (too_many && params.device.kind == Device::Kind::automatic) params.device.kind = Device::Kind::cpu;
    params.device = detail::choose(params.device);
    if (params.device.kind == Device::Kind::cuda) check_gpu_degree(params);
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
                const LinkParams& given, std::int32_t* links, const Callbacks& callbacks, Resources* resources) {
    constexpr Device kCpu{Device::Kind::cpu, 0};
    check_params(given);
    detail::check_shape(vectors);
    LinkParams params = given;
    const int place = device_of(vectors.data);
    params.device = place < 0 ? kCpu : Device{Device::Kind::cuda, place};
    const bool on_gpu = place >= 0;
    if (on_gpu) check_gpu_degree(params);
    detail::check_reach(params.device, {vectors.data, graph.ids});
    detail::check_reach(kCpu, {objects, links});
    if (count < 0) throw InvalidArgument("prune_rows: " + std::to_string(count) + " objects");
    if (count == 0) return;
    if (objects == nullptr || links == nullptr) throw InvalidArgument("prune_rows: objects or links are null pointers");
    check_graph("prune_rows", graph, vectors);
    detail::check_ids(objects, count, 0, vectors.n, "objects");
    if (device_of(graph.ids) < 0)
        for (std::int64_t i = 0; i < count; ++i) check_rows(graph, objects[i], 1);
    if (on_gpu)
        return cuda::prune_rows(vectors, graph, objects, count, params, links, callbacks, detail::or_heap(resources));
    detail::check_reach(kCpu, {graph.distances});
    cpu::prune_rows(vectors, graph, objects, count, params, links, callbacks, detail::or_heap(resources));
}

}  // namespace gnnd
