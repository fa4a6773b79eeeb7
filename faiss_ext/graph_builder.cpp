// SPDX-License-Identifier: MIT
#include "faiss_ext/graph_builder.h"

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/print.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/faiss_resources.h"

namespace faiss_ext {

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
        build(on_cpu ? source.on_host() : source.vectors(), used, hooks);
        on_gpu = stats.device.kind == gnnd::Device::Kind::cuda;
        timing.clear();
        const double first = stats.iterations.empty() ? 0 : stats.iterations.front().seconds;
        timing.push_back({"init", first});
        timing.push_back({"iterations", stats.seconds - first});
    });
}

gnnd::KnnGraph GnndGraphBuilder::build(const VectorSource& source, int k) {
    gnnd::KnnGraph graph;
    run(source, k, [&](const gnnd::VectorView& x, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        gnnd::BuildResult result = gnnd::build(x, used, hooks, resources_.get());
        stats = std::move(result.stats);
        graph = std::move(result.graph);
    });
    return graph;
}

void GnndGraphBuilder::build_into(const VectorSource& source, int k, std::int32_t* ids, float* distances) {
    run(source, k, [&](const gnnd::VectorView& x, const gnnd::BuildParams& used, const gnnd::Callbacks& hooks) {
        stats = gnnd::build_into(x, used, ids, distances, hooks, resources_.get());
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
          {"seed", "of all random choices", std::int64_t(IvfpqParams{}.seed)}},
         [](const OptionValues& values, const Gpu& gpu) {
             IvfpqParams params;
             take(values, "nlist", params.nlist);
             take(values, "code-bytes", params.code_bytes);
             take(values, "nprobe", params.nprobe);
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
