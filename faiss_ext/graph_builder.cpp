// SPDX-License-Identifier: MIT
#include "faiss_ext/graph_builder.h"

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/faiss_resources.h"
#include "gnnd/detail/append_rows.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/device_graph.h"
#include "gnnd/merge.h"

namespace faiss_ext {
namespace {

void require_one_metric(const VectorSource& first, const VectorSource& second) {
    if (first.metric() != second.metric())
        detail::fail("GnndGraphBuilder: vectors under " + std::string(gnnd::name_of(first.metric())) + " and under " +
                     std::string(gnnd::name_of(second.metric())));
}

}  // namespace

GnndGraphBuilder::GnndGraphBuilder(faiss::gpu::GpuResourcesProvider* resources, const GnndParams& params)
    : params(params), provider_(resources) {
    detail::with_faiss_errors([&] { take_resources(); });
}

void GnndGraphBuilder::take_resources() {
    const int device = params.device.index;
    if (params.device.kind == gnnd::Device::Kind::cpu)
        detail::fail("GnndGraphBuilder: params.device is cpu, FAISS's resources are for a GPU");
    if (resources_ && device == device_) return;
    detail::check_gpu({provider_, device}, "GnndGraphBuilder");
    resources_ = std::make_unique<FaissResources>(Gpu{provider_, device});
    device_ = device;
}

void GnndGraphBuilder::use(faiss::gpu::GpuResourcesProvider* resources) {
    provider_ = resources;
    resources_.reset();
    if (resources != nullptr) detail::with_faiss_errors([&] { take_resources(); });
}

GnndGraphBuilder::GnndGraphBuilder(const GnndGraphBuilder& other) : GraphBuilder(other) {
    *this = other;
}

GnndGraphBuilder& GnndGraphBuilder::operator=(const GnndGraphBuilder& other) {
    if (this == &other) return *this;
    GraphBuilder::operator=(other);
    params = other.params;
    callbacks = other.callbacks;
    stats = other.stats;
    use(other.provider_);
    return *this;
}

GnndGraphBuilder::~GnndGraphBuilder() = default;

template <class Build>
void GnndGraphBuilder::run(const VectorSource& source, int k, const Build& build) {
    detail::with_faiss_errors([&] {
        if (resources_) take_resources();
        gnnd::BuildParams used = params;
        used.k = k;
        used.metric = source.metric();
        if (resources_)
            used.device = {gnnd::Device::Kind::cuda, device_};
        else if (used.device.kind == gnnd::Device::Kind::automatic && source.device() >= 0)
            used.device = {gnnd::Device::Kind::cuda, source.device()};
        gnnd::Callbacks hooks = callbacks;
        if (verbose && !hooks.verbose) hooks.verbose = detail::print_line;
        hooks.interrupt = [this] {
            return faiss::InterruptCallback::is_interrupted() || (callbacks.interrupt && callbacks.interrupt());
        };
        const bool on_cpu = used.device.kind == gnnd::Device::Kind::cpu;
        build([&](const VectorSource& set) { return on_cpu ? set.on_host() : set.vectors(); }, used, hooks);
        on_gpu = stats.device.kind == gnnd::Device::Kind::cuda;
        timing.clear();
        const double first = stats.iterations.empty() ? 0 : stats.iterations.front().seconds;
        timing.push_back({"init", first});
        timing.push_back({"iterations", stats.seconds - first});
    });
}

template <class Make>
gnnd::KnnGraph GnndGraphBuilder::make(const VectorSource& source, int k, const Make& make) {
    gnnd::KnnGraph graph;
    run(source, k, [&](const auto& place, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        gnnd::BuildResult result = make(place, used, hooks);
        stats = std::move(result.stats);
        graph = std::move(result.graph);
    });
    return graph;
}

gnnd::KnnGraph GnndGraphBuilder::build(const VectorSource& source, int k) {
    return make(source, k, [&](const auto& place, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        return gnnd::build(place(source), used, hooks, resources_.get());
    });
}

void GnndGraphBuilder::build_into(const VectorSource& source, int k, std::int32_t* ids, float* distances) {
    run(source, k, [&](const auto& place, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        stats = gnnd::build_into(place(source), used, ids, distances, hooks, resources_.get());
    });
}

gnnd::KnnGraph GnndGraphBuilder::refine(const VectorSource& source, const gnnd::KnnGraphView& graph, int k) {
    return make(source, k, [&](const auto& place, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        return gnnd::refine(place(source), graph, used, hooks, resources_.get());
    });
}

gnnd::KnnGraph GnndGraphBuilder::append(const VectorSource& source, const gnnd::KnnGraphView& graph,
                                        const VectorSource& added, int k, idx_t unmeasured) {
    require_one_metric(source, added);
    return make(source, k, [&](const auto& place, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        return gnnd::append(place(source), graph, place(added), used, hooks, resources_.get(),
                            gnnd::AppendMethod::automatic, unmeasured);
    });
}

gnnd::detail::AppendedRows GnndGraphBuilder::append_rows(const VectorSource& source, const gnnd::KnnGraphView& graph) {
    gnnd::detail::AppendedRows rows;
    run(source, int(graph.k), [&](const auto&, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        used.validate();
        rows = gnnd::detail::append_rows(source.on_host(), graph, used, hooks);
        stats = rows.stats;
        gnnd::detail::choose(used.device, &stats.device_reason);
    });
    return rows;
}

gnnd::Device GnndGraphBuilder::place() const {
    if (resources_) return {gnnd::Device::Kind::cuda, params.device.index};
    return gnnd::detail::choose(params.device);
}

void GnndGraphBuilder::build_on(gnnd::detail::DeviceGraph& graph, const VectorSource& source, int k) {
    run(source, k, [&](const auto&, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        stats = graph.build(source.vectors(), used, hooks, gnnd::detail::or_heap(resources_.get()));
    });
}

void GnndGraphBuilder::merge_on(gnnd::detail::DeviceGraph& graph, const VectorSource& first,
                                const gnnd::KnnGraphView& graph1, const VectorSource& second,
                                const gnnd::KnnGraphView& graph2, int k) {
    run(first, k, [&](const auto&, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        stats = graph.merge(first.vectors(), graph1, second.vectors(), graph2, used, hooks,
                            gnnd::detail::or_heap(resources_.get()));
    });
}

void GnndGraphBuilder::append_on(gnnd::detail::DeviceGraph& graph, const VectorSource& added, int k, idx_t unmeasured) {
    run(added, k, [&](const auto&, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        stats = graph.append(added.vectors(), unmeasured, used, hooks, gnnd::detail::or_heap(resources_.get()));
    });
}

gnnd::KnnGraph GnndGraphBuilder::merge(const VectorSource& first, const gnnd::KnnGraphView& graph1,
                                       const VectorSource& second, const gnnd::KnnGraphView& graph2, int k) {
    require_one_metric(first, second);
    return make(first, k, [&](const auto& place, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        return gnnd::merge(place(first), graph1, place(second), graph2, used, hooks, resources_.get());
    });
}

const std::vector<GraphBuilderType>& graph_builder_types() {
    static const std::vector<GraphBuilderType> types{
        {"gnnd",
         "the others are what it is compared with",
         true,
         {},
         [](const OptionValues&, const Gpu& gpu) {
             GnndParams params;
             params.device.index = gpu.device;
             return gpu.resources == nullptr ? std::make_unique<GnndGraphBuilder>()
                                             : std::make_unique<GnndGraphBuilder>(gpu.resources, params);
         }},
        {"exhaustive",
         "the same library's comparison of all pairs",
         true,
         {},
         [](const OptionValues&, const Gpu& gpu) {
             GnndParams params;
             params.recall = 1;
             params.device.index = gpu.device;
             auto builder = gpu.resources == nullptr ? std::make_unique<GnndGraphBuilder>()
                                                     : std::make_unique<GnndGraphBuilder>(gpu.resources, params);
             builder->params.recall = 1;
             return builder;
         }},
        {"exact",
         "FAISS's flat search",
         true,
         {},
         [](const OptionValues&, const Gpu& gpu) { return std::make_unique<ExactGraphBuilder>(gpu); }},
        {"ivfpq",
         "FAISS's, as in the paper",
         true,
         {{"nlist", "coarse centroids; 0: 4 sqrt(n), at most 65536", IvfpqParams{}.nlist},
          {"code-bytes", "bytes of a vector's code", IvfpqParams{}.code_bytes, 1},
          {"nprobe", "lists visited by a query", IvfpqParams{}.nprobe, 1},
          {"points-per-centroid", "training vectors of a coarse centroid at most", IvfpqParams{}.points_per_centroid,
           1},
          {"seed", "of all random choices", std::int64_t(IvfpqParams{}.seed)}},
         [](const OptionValues& values, const Gpu& gpu) {
             IvfpqParams params;
             take(values, "nlist", params.nlist);
             take(values, "code-bytes", params.code_bytes);
             take(values, "nprobe", params.nprobe);
             take(values, "points-per-centroid", params.points_per_centroid);
             take(values, "seed", params.seed);
             return std::make_unique<IvfpqGraphBuilder>(params, gpu);
         }},
        {"nndescent",
         "FAISS's, on the CPU",
         false,
         {{"iterations", "so many", NNDescentParams{}.iterations},
          {"seed", "of all random choices", std::int64_t(NNDescentParams{}.seed)}},
         [](const OptionValues& values, const Gpu&) {
             NNDescentParams params;
             take(values, "iterations", params.iterations);
             take(values, "seed", params.seed);
             return std::make_unique<NNDescentGraphBuilder>(params);
         }}};
    return types;
}

std::unique_ptr<GraphBuilder> make_graph_builder(const std::string& name, const Gpu& gpu, const OptionValues& values) {
    return choose(graph_builder_types(), "graph builder", name, values).make(values, gpu);
}

}  // namespace faiss_ext
