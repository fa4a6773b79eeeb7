// SPDX-License-Identifier: MIT
#include "baseline.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include "choices.h"
#include "common.h"
#include "faiss_ext/graph_builder.h"
#include "faiss_gpu.h"
#include "files.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "threads.h"

namespace cli {

void add_method(CLI::App& app, std::string& method) {
    add_choice(app, "--method", method, faiss_ext::graph_builder_types(), "what builds it: ");
}

void add_method_options(CLI::App& app, MethodValues& values) {
    add_choice_options(app, faiss_ext::graph_builder_types(), values);
}

void require_method_options(const CLI::App& app, const std::string& method, const std::vector<std::string>& of_gnnd) {
    require_own_options(app, "--method", method, faiss_ext::graph_builder_types(), of_gnnd);
}

void build_baseline(const BaselineOptions& options) {
    require_outputs({options.graph, options.stats}, {options.base});
    require_graph_output(options.graph);
    use_blas();
    const gnnd::io::VectorFile base(options.base);
    require_room(options.graph, gnnd::io::graph_file_bytes(base.n(), options.k, true));
    const faiss_ext::GraphBuilderType type =
        faiss_ext::choose(faiss_ext::graph_builder_types(), "--method", options.method, {});
    const FaissGpu gpu(type.gpu ? options.device : gnnd::Device{gnnd::Device::Kind::cpu, 0});
    const Bases bases(base);
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<faiss_ext::GraphBuilder> builder = type.make(values_for(type, options.values), gpu.get());
    const gnnd::KnnGraph graph = with_row_names(
        {&base}, [&] { return builder->build(faiss_ext::VectorSource(base.view(), options.metric), options.k); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    gnnd::io::write_graph(options.graph, graph, bases.unchanged());

    Json steps = Json::object();
    for (const auto& [step, time] : builder->timing) steps[step] = time;
    const Json json = {{"graph", options.graph},
                       {"base", options.base},
                       {"method", options.method},
                       {"n", graph.n()},
                       {"d", base.d()},
                       {"k", graph.k()},
                       {"metric", name_of(graph.metric())},
                       {"device", gpu.name(builder->on_gpu)},
                       {"seconds", seconds.count()},
                       {"timing", steps},
                       {"peak_memory_bytes", peak_memory()}};
    if (!options.stats.empty()) write_json(options.stats, json);
    if (options.json) {
        print(json);
        return;
    }
    std::printf("device      %s\n", gpu.name(builder->on_gpu).c_str());
    std::printf("seconds     %.3f\n", seconds.count());
    for (const auto& [step, time] : builder->timing) std::printf("  %-11s %.3f\n", step.c_str(), time);
    std::printf("memory      %s at most\n", human_bytes(peak_memory()).c_str());
    std::printf("graph       %s\n", options.graph.c_str());
}

}  // namespace cli
