#include "faiss_ext/graph_builder.h"

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/timer.h"
#include "faiss_ext/faiss_resources.h"

namespace faiss_ext {

GnndGraphBuilder::GnndGraphBuilder(faiss::gpu::GpuResourcesProvider* resources, const GnndConfig& config)
    : params(config.params) {
    detail::with_faiss_errors([&] {
        detail::check_gpu({resources, config.device}, "GnndGraphBuilder");
        resources_ = std::make_unique<FaissResources>(Gpu{resources, config.device});
    });
    verbose = config.verbose;
    device_ = config.device;
}

GnndGraphBuilder::~GnndGraphBuilder() = default;

template <class Build>
void GnndGraphBuilder::run(const VectorSource& source, int k, const Build& build) {
    detail::with_faiss_errors([&] {
        gnnd::BuildParams used = params;
        used.k = k;
        used.metric = source.metric();
        used.verbose = params.verbose || verbose;
        if (resources_)
            used.device = {gnnd::Device::Kind::cuda, device_};
        else if (used.device.kind == gnnd::Device::Kind::automatic && source.device() >= 0)
            used.device = {gnnd::Device::Kind::cuda, source.device()};
        gnnd::Callbacks hooks = callbacks;
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

std::unique_ptr<GraphBuilder> make_graph_builder(const std::string& name, const Gpu& gpu) {
    if (name == "gnnd") {
        if (gpu.resources == nullptr) return std::make_unique<GnndGraphBuilder>();
        GnndConfig config;
        config.device = gpu.device;
        return std::make_unique<GnndGraphBuilder>(gpu.resources, config);
    }
    if (name == "exact") return std::make_unique<ExactGraphBuilder>(gpu);
    if (name == "ivfpq") return std::make_unique<IvfpqGraphBuilder>(IvfpqParams(), gpu);
    if (name == "nndescent") return std::make_unique<NNDescentGraphBuilder>();
    detail::fail("unknown graph builder '" + name + "'; there are gnnd, exact, ivfpq and nndescent");
}

}  // namespace faiss_ext
