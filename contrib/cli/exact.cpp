#include <chrono>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "common.h"
#include "faiss_ext/graph_builder.h"
#include "files.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"

namespace cli {

namespace {

struct ExactOptions {
    std::string base, graph;
    int k = gnnd::BuildParams{}.k;
    gnnd::Metric metric = gnnd::BuildParams{}.metric;
    bool json = false;
};

void run(const ExactOptions& options) {
    require_writable(options.graph);
    const gnnd::io::VectorFile base(options.base);
    const auto start = std::chrono::steady_clock::now();
    const faiss_ext::VectorSource source(base.view(), options.metric);
    const gnnd::KnnGraph graph = faiss_ext::ExactGraphBuilder().build(source, options.k);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    gnnd::io::write_graph(options.graph, graph, base.dtype());

    if (options.json) {
        print({{"graph", options.graph},
               {"base", options.base},
               {"n", graph.n()},
               {"d", base.d()},
               {"k", graph.k()},
               {"metric", name_of(graph.metric())},
               {"seconds", seconds.count()},
               {"peak_memory_bytes", peak_memory()}});
        return;
    }
    std::printf("seconds     %.3f\n", seconds.count());
    std::printf("memory      %s at most\n", human_bytes(peak_memory()).c_str());
    std::printf("graph       %s\n", options.graph.c_str());
}

}  // namespace

void add_exact(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("exact", "Build the exact k-NN graph with FAISS's flat search");
    const auto options = std::make_shared<ExactOptions>();
    add_base(command, options->base);
    add_k(command, options->k, "neighbours per object, at most " + std::to_string(gnnd::kMaxK));
    add_output(command, options->graph, "graph file to write; .gnnd by convention");
    add_metric(command, options->metric);
    add_json(command, options->json);
    command.footer("The time grows with the square of the number of vectors.");
    command.callback([options] { run(*options); });
}

}  // namespace cli
