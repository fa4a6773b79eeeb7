// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstdio>
#include <memory>

#include "any_graph.h"
#include "choices.h"
#include "commands.h"
#include "common.h"
#include "faiss_ext/graph_index.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "index_file.h"
#include "interrupt.h"
#include "threads.h"

namespace cli {

namespace {

struct IndexOptions {
    std::string graph, base, type, output;
    faiss_ext::OptionValues values;  // of all types' options
    gnnd::Device device;
    bool json = false;
};

void run(const IndexOptions& options, const faiss_ext::GraphIndexType& type) {
    require_outputs({options.output}, {options.graph, options.base});
    use_blas();
    const AnyGraph file(options.graph);
    const gnnd::io::VectorFile base(options.base);
    file.require_fit(base);
    const gnnd::KnnGraph graph = file.read();
    const faiss_ext::VectorSource source(base.view(), graph.metric());
    const FaissGpu gpu(type.gpu ? options.device : gnnd::Device{gnnd::Device::Kind::cpu, 0});
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<faiss::Index> index = type.make(source, graph, values_for(type, options.values), gpu.get());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    write_index_file(options.output, *index);

    if (options.json) {
        print({{"index", options.output},
               {"type", options.type},
               {"n", index->ntotal},
               {"d", index->d},
               {"seconds", seconds.count()}});
        return;
    }
    std::printf("type        %s, %lld x %d\n", options.type.c_str(), static_cast<long long>(index->ntotal), index->d);
    std::printf("seconds     %.3f\n", seconds.count());
    std::printf("index       %s\n", options.output.c_str());
}

std::string searchable_metrics() {
    std::string names;
    for (const gnnd::Metric metric : gnnd::kMetrics)
        if (faiss_ext::searched_metric(metric)) names += (names.empty() ? "" : ", ") + std::string(name_of(metric));
    return names;
}

}  // namespace

void add_index(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("index", "Make a FAISS graph index of a graph and its vectors");
    const auto options = std::make_shared<IndexOptions>();
    add_graph(command, options->graph);
    add_base(command, options->base);
    add_choice(command, "--type", options->type, faiss_ext::graph_index_types(), "of FAISS's indexes: ")->required();
    add_output(command, options->output, "index file to write; faiss::read_index opens it");
    add_choice_options(command, faiss_ext::graph_index_types(), options->values);
    add_device(command, options->device);
    add_json(command, options->json);
    command.footer(
        "The search beam is what the index starts with; `gnnd search --ef` and FAISS change it.\n"
        "The metrics that FAISS has: " +
        searchable_metrics() +
        ". Under cosine the index holds normalised vectors: normalise queries\n"
        "too. The file ends with a checksum, which plain FAISS passes over and `gnnd search` verifies.");
    command.callback([options, &command] {
        run(*options, require_own_options(command, "--type", options->type, faiss_ext::graph_index_types()));
    });
}

}  // namespace cli
