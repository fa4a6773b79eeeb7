// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "any_graph.h"
#include "choices.h"
#include "commands.h"
#include "common.h"
#include "faiss_ext/graph_index.h"
#include "faiss_gpu.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "grow_index.h"
#include "index_file.h"
#include "interrupt.h"
#include "threads.h"

namespace cli {

namespace {

struct IndexOptions : GrowOptions {
    std::string graph, type;
    faiss_ext::OptionValues values;  // of all types' options
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
    base.require_unchanged();
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
    CLI::App& command =
        *app.add_subcommand("index", "Make a FAISS graph index of a graph and its vectors, or grow one");
    const auto options = std::make_shared<IndexOptions>();
    CLI::Option* graph = add_graph(command, options->graph);
    graph->description(graph->get_description() + "; left out with --factory and --append");
    add_base(command, options->base)->required(false);
    add_choice(command, "--type", options->type, faiss_ext::graph_index_types(), "of FAISS's indexes: ");
    add_output(command, options->output, "index file to write; faiss::read_index opens it");
    add_choice_options(command, faiss_ext::graph_index_types(), options->values);
    add_name(command, "--factory", options->factory, "TEXT",
             "build graph and index of BASE: FAISS's description with GNND, as GNND64,NSG32 or "
             "PCA64,GNND32,HNSW16,RFlat");
    add_name(command, "--append", options->older, "INDEX",
             "add BASE to the NSG or HNSW of this file, which stays as it is");
    const std::vector<CLI::Option*> of_factory{add_metric(command, options->metric)};
    const std::vector<CLI::Option*> of_both{
        add_real(command, "--recall", options->recall, 0, 1, "with --factory and --append: as `gnnd build --recall`")};
    add_device(command, options->device);
    add_json(command, options->json);
    command.footer(
        "The search beam is what the index starts with; `gnnd search --ef` and FAISS change it.\n"
        "The metrics of graphs that FAISS can search: " +
        searchable_metrics() +
        ". Under cosine\n"
        "the index holds normalised vectors: normalise queries and what you append too. With --factory that is\n"
        "--metric ip and L2norm, in front, as L2norm,GNND64,NSG32, which normalises queries itself. The file ends\n"
        "with a checksum, which plain FAISS passes over and `gnnd search` verifies.\n"
        "Example: gnnd index base.gnnd base.fvecs --type nsg -o base.nsg\n"
        "         gnnd index base.fvecs --factory GNND64,NSG32 -o base.nsg\n"
        "         gnnd index new.fvecs --append base.nsg -o all.nsg");
    command.callback([options, of_factory, of_both, &command] {
        const auto given = [&](const std::string& flag) { return command.get_option(flag)->count() > 0; };
        const std::string way = given("--factory") ? "--factory" : given("--append") ? "--append" : "--type";
        const auto refuse = [&](const CLI::Option& option) {
            if (option.count() > 0) throw CLI::ValidationError(option.get_name(), "has no meaning with " + way);
        };
        if (way != "--factory")
            for (const CLI::Option* option : of_factory) refuse(*option);
        if (way == "--type") {
            for (const CLI::Option* option : of_both) refuse(*option);
            if (!given("--type")) throw CLI::RequiredError("--type, --factory or --append");
            if (!given("BASE")) throw CLI::RequiredError("BASE");
            return run(*options, require_own_options(command, "--type", options->type, faiss_ext::graph_index_types()));
        }
        refuse(*command.get_option("--type"));
        if (way == "--factory") refuse(*command.get_option("--append"));
        if (given("BASE")) throw CLI::ValidationError(options->base, "is one name too many with " + way);
        for (const auto& type : faiss_ext::graph_index_types())
            for (const faiss_ext::Option& option : type.options) refuse(*command.get_option("--" + option.name));
        options->base = std::exchange(options->graph, "");
        grow_index(*options);
    });
}

}  // namespace cli
