// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "any_graph.h"
#include "commands.h"
#include "common.h"
#include "faiss_ext/evaluate.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "threads.h"

namespace cli {

namespace {

struct EvalOptions {
    std::string graph, base;
    int k = 10;
    bool k_given = false;
    std::int64_t queries = 10000;
    std::uint64_t seed = 1;
    gnnd::Device device;
    bool json = false;
};

void run(const EvalOptions& options) {
    use_blas();
    const AnyGraph graph(options.graph);
    const gnnd::io::VectorFile base(options.base);
    graph.require_fit(base);
    const int k = options.k_given ? options.k : int(std::min<std::int64_t>(options.k, graph.k()));
    const faiss_ext::VectorSource source(base.view(), graph.metric());
    const FaissGpu gpu(options.device);
    const std::vector<std::int32_t> objects = faiss_ext::sample_objects(graph.n(), options.queries, options.seed);
    const faiss_ext::Recall recall = faiss_ext::recall_of_rows(source, graph.rows_of(objects), objects, k, gpu.get());
    stop_if_interrupted();

    if (options.json) {
        print({{"recall", recall.value},
               {"k", recall.k},
               {"queries", recall.queries},
               {"n", graph.n()},
               {"metric", name_of(graph.metric())},
               {"device", gpu.name(recall.on_gpu)},
               {"seconds", recall.seconds}});
        return;
    }
    std::printf("Recall@%d %.4f\n", recall.k, recall.value);
    std::printf("%lld of %lld objects searched exactly in %.2f s on %s\n", static_cast<long long>(recall.queries),
                static_cast<long long>(graph.n()), recall.seconds, gpu.name(recall.on_gpu).c_str());
}

}  // namespace

void add_eval(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("eval", "Compare a graph with the exact neighbours: Recall@k");
    const auto options = std::make_shared<EvalOptions>();
    add_graph(command, options->graph);
    add_base(command, options->base);
    const CLI::Option* k =
        add_k(command, options->k, 65535, "neighbours compared; by default no more than the graph has");
    add_whole(command, "--queries", options->queries, 0, gnnd::kMaxObjects,
              "objects searched exactly, drawn at random; 0: all of them");
    add_seed(command, options->seed, "of the draw");
    add_device(command, options->device);
    add_json(command, options->json);
    command.footer(
        "The exact neighbours come from FAISS's flat search. Ties count by distance: any neighbour that is no\n"
        "farther than the exact k-th one is right.");
    command.callback([options, k] {
        options->k_given = k->count() > 0;
        run(*options);
    });
}

}  // namespace cli
