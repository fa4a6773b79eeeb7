#include "faiss_ext/graph_builder.h"

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/timer.h"

namespace faiss_ext {

gnnd::KnnGraph GnndGraphBuilder::build(const VectorSource& source, int k) {
    return detail::with_faiss_errors([&] {
        gnnd::BuildParams used = params;
        used.k = k;
        used.metric = source.metric();
        used.verbose = params.verbose || verbose;
        gnnd::Callbacks hooks = callbacks;
        hooks.interrupt = [this] {
            return faiss::InterruptCallback::is_interrupted() || (callbacks.interrupt && callbacks.interrupt());
        };
        gnnd::BuildResult result = gnnd::build(source.vectors(), used, hooks);
        stats = std::move(result.stats);
        timing.clear();
        const double first = stats.iterations.empty() ? 0 : stats.iterations.front().seconds;
        detail::append_seconds(timing, "init", first);
        detail::append_seconds(timing, "iterations", stats.seconds - first);
        return std::move(result.graph);
    });
}

std::unique_ptr<GraphBuilder> make_graph_builder(const std::string& name) {
    if (name == "gnnd") return std::make_unique<GnndGraphBuilder>();
    if (name == "exact") return std::make_unique<ExactGraphBuilder>();
    if (name == "ivfpq") return std::make_unique<IvfpqGraphBuilder>();
    if (name == "nndescent") return std::make_unique<NNDescentGraphBuilder>();
    detail::fail("unknown graph builder '" + name + "'; there are gnnd, exact, ivfpq and nndescent");
}

}  // namespace faiss_ext
