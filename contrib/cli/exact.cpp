// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "baseline.h"
#include "commands.h"
#include "common.h"
#include "faiss_ext/exact_search.h"
#include "faiss_gpu.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "threads.h"
#include "values.h"

namespace cli {

namespace {

struct ExactOptions : BaselineOptions {
    std::string queries, distances;
};

/// The exact neighbours of other vectors: files of ids and distances.
void answer_queries(const ExactOptions& options) {
    require_outputs({options.graph, options.distances}, {options.base, options.queries});
    const gnnd::io::VectorFile base(options.base), queries(options.queries);
    if (queries.d() != base.d())
        throw gnnd::InvalidArgument(options.queries + " has vectors of " + std::to_string(queries.d()) +
                                    " components, " + options.base + " of " + std::to_string(base.d()));
    gnnd::io::VectorWriter ids(options.graph, queries.n(), options.k, gnnd::DType::i32);
    std::unique_ptr<gnnd::io::VectorWriter> distances;
    if (!options.distances.empty())
        distances =
            std::make_unique<gnnd::io::VectorWriter>(options.distances, queries.n(), options.k, gnnd::DType::f32);
    use_blas();
    const bool in_faiss = faiss_ext::searched_metric(options.metric).has_value();
    const FaissGpu gpu(in_faiss ? options.device : gnnd::Device{gnnd::Device::Kind::cpu, 0});
    const auto start = std::chrono::steady_clock::now();
    const gnnd::KnnGraph found = with_row_names({&base, &queries}, [&] {
        return faiss_ext::exact_search({base.view(), options.metric}, queries.view(), options.k, gpu.get());
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    base.require_unchanged();
    queries.require_unchanged();
    ids.append(found.ids(), found.n());
    ids.commit();
    if (distances) {
        distances->append(found.distances(), found.n());
        distances->commit();
    }
    if (options.json) {
        Json json = {{"base", options.base},     {"queries", queries.n()},
                     {"k", options.k},           {"metric", name_of(options.metric)},
                     {"device", gpu.name(true)}, {"seconds", seconds.count()},
                     {"output", options.graph}};
        if (distances) json["distances"] = options.distances;
        print(json);
        return;
    }
    std::printf("%lld queries in %.3f s on %s\n", static_cast<long long>(queries.n()), seconds.count(),
                gpu.name(true).c_str());
    std::printf("neighbours  %s\n", options.graph.c_str());
    if (distances) std::printf("distances   %s\n", options.distances.c_str());
}

}  // namespace

void add_exact(CLI::App& app) {
    CLI::App& command = *app.add_subcommand(
        "exact", "Build the exact k-NN graph with FAISS's flat search, or find the exact neighbours of queries");
    const auto options = std::make_shared<ExactOptions>();
    add_base(command, options->base);
    add_k(command, options->k, gnnd::kMaxK, "neighbours per object, at most " + std::to_string(gnnd::kMaxK));
    add_output(
        command, options->graph,
        "graph file to write, .gnnd by convention; with --queries a file of ids: " + formats_of(gnnd::DType::i32));
    add_name(command, "--queries", options->queries, "FILE",
             "of each of these vectors, in a file like BASE, instead of BASE's own: the nearest in BASE");
    add_name(command, "--distances", options->distances, "FILE",
             "with --queries: write the distances here: " + formats_of(gnnd::DType::f32))
        ->needs("--queries");
    add_metric(command, options->metric);
    add_device(command, options->device);
    add_json(command, options->json);
    command.footer(
        "The time grows with the square of the number of vectors; with --queries with the product of both numbers.\n"
        "Without --queries it is `gnnd build --method exact`.");
    command.callback([options] {
        if (options->queries.empty()) return build_baseline(*options);
        answer_queries(*options);
    });
}

}  // namespace cli
