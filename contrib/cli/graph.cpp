// SPDX-License-Identifier: MIT
// graph: what others make of a k-NN graph, as files that they read.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "any_graph.h"
#include "build_options.h"
#include "commands.h"
#include "common.h"
#include "files.h"
#include "gnnd/io/csr_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/operations.h"
#include "interrupt.h"
#include "threads.h"
#include "values.h"

namespace cli {

namespace {

struct GraphOptions {
    std::string operation, graph, base, out;
    gnnd::EdgeParams edges;
    gnnd::JaccardParams jaccard;
    gnnd::FuzzyParams fuzzy;
    gnnd::ReachabilityParams reachability;
    float threshold = 0, radius = 0;
    int neighbors = 0, threads = 0;
    gnnd::Device device;
    gnnd::Array<std::int32_t> equal;  ///< rows of the base that are equal; empty: it was not given
    bool mutual = false, json = false;
};

/// The result of an operation, a matrix or labels, and the text about it.
struct Made {
    gnnd::CsrGraph matrix;
    gnnd::Array<std::int32_t> labels;
    bool symmetric = true;  ///< of the matrix
    Json report;
};

/// An operation by name, and the options that it has beside those of all.
struct Operation {
    std::string name, help;
    bool labels;  ///< it makes labels, otherwise a matrix
    std::vector<std::string> options;
    std::function<Made(const GraphOptions&, const gnnd::KnnGraphView&, const gnnd::Callbacks&)> make;
};

Made matrix_of(gnnd::CsrGraph matrix, bool symmetric = true) {
    Made made;
    made.symmetric = symmetric;
    made.report["entries"] = matrix.entries();
    made.matrix = std::move(matrix);
    return made;
}

/// Of matrices whose entries are cut by a radius.
template <class Make>
Made cut_matrix(const GraphOptions& options, const gnnd::KnnGraphView& graph, const gnnd::Callbacks& callbacks,
                const Make& make, bool symmetric) {
    Made made = matrix_of(make(graph, options.edges, callbacks, nullptr), symmetric);
    made.report["values"] = name_of(options.edges.values);
    if (options.edges.radius) made.report["full_rows"] = full_rows(graph, options.edges, callbacks);
    return made;
}

std::int64_t largest(const std::vector<std::int64_t>& sizes) {
    return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

Made components_of(const GraphOptions& options, const gnnd::KnnGraphView& graph, const gnnd::Callbacks& callbacks) {
    gnnd::Components found =
        options.mutual ? connected_components(mutual_graph(graph, options.edges, callbacks), options.threads, callbacks)
                       : connected_components(graph, options.edges, callbacks);
    Made made;
    made.report["components"] = found.sizes.size();
    made.report["largest"] = largest(found.sizes);
    made.report["alone"] = std::count(found.sizes.begin(), found.sizes.end(), 1);
    made.labels = std::move(found.labels);
    return made;
}

Made duplicates_of(const GraphOptions& options, const gnnd::KnnGraphView& graph, const gnnd::Callbacks& callbacks) {
    gnnd::Duplicates found = duplicates(graph,
                                        {options.threshold, options.edges.values, options.neighbors, options.threads,
                                         options.equal.empty() ? nullptr : options.equal.data(), options.device},
                                        callbacks);
    std::int64_t copies = 0;
    for (const std::int64_t size : found.sizes) copies += size;
    Made made;
    made.report["groups"] = found.sizes.size();
    made.report["objects"] = copies;
    made.report["redundant"] = copies - std::int64_t(found.sizes.size());
    made.report["largest"] = largest(found.sizes);
    made.report["full_rows"] = found.full;
    made.labels = std::move(found.labels);
    return made;
}

const std::vector<Operation>& operations() {
    using Options = const GraphOptions&;
    using Graph = const gnnd::KnnGraphView&;
    using Hooks = const gnnd::Callbacks&;
    static const std::vector<Operation> all{
        {"knn",
         "every object's own entries",
         false,
         {"--values", "--radius"},
         [](Options o, Graph g, Hooks h) { return cut_matrix(o, g, h, gnnd::neighbors_graph, false); }},
        {"symmetric",
         "pairs of which either names the other",
         false,
         {"--values", "--radius"},
         [](Options o, Graph g, Hooks h) { return cut_matrix(o, g, h, gnnd::symmetric_graph, true); }},
        {"mutual",
         "pairs that name each other",
         false,
         {"--values", "--radius"},
         [](Options o, Graph g, Hooks h) { return cut_matrix(o, g, h, gnnd::mutual_graph, true); }},
        {"jaccard",
         "shared-neighbour weights",
         false,
         {"--include-self", "--prune"},
         [](Options o, Graph g, Hooks h) { return matrix_of(jaccard_graph(g, o.jaccard, h)); }},
        {"fuzzy",
         "UMAP's weights",
         false,
         {"--local-connectivity", "--set-op-mix-ratio", "--bandwidth"},
         [](Options o, Graph g, Hooks h) { return matrix_of(fuzzy_simplicial_set(g, o.fuzzy, h)); }},
        {"reachability",
         "HDBSCAN's mutual reachability",
         false,
         {"--min-samples", "--alpha"},
         [](Options o, Graph g, Hooks h) { return matrix_of(mutual_reachability_graph(g, o.reachability, h)); }},
        {"components",
         "the number of each object's connected component",
         true,
         {"--values", "--radius", "--mutual"},
         components_of},
        {"duplicates",
         "the number of each object's group of copies, -1 where it has none",
         true,
         {"--values", "--threshold", "--base"},
         duplicates_of}};
    return all;
}

/// The operations that have the option, "a, b: ".
std::string owners(const std::string& option) {
    std::string names;
    for (const Operation& operation : operations())
        if (std::find(operation.options.begin(), operation.options.end(), option) != operation.options.end())
            names += (names.empty() ? "" : ", ") + operation.name;
    return names + ": ";
}

const Operation& chosen(const std::string& name) {
    return *std::find_if(operations().begin(), operations().end(), [&](const Operation& o) { return o.name == name; });
}

/// \throws CLI::ValidationError for options of other operations, and for a name of OUT that does not tell a format
void require_usage(const CLI::App& command, const Operation& operation, const GraphOptions& options) {
    for (const Operation& other : operations())
        for (const std::string& option : other.options)
            if (command.get_option(option)->count() > 0 &&
                std::find(operation.options.begin(), operation.options.end(), option) == operation.options.end())
                throw CLI::ValidationError(option, "has no meaning for " + operation.name);
    try {
        if (!operation.labels)
            gnnd::io::csr_format_of(options.out);
        else if (!is_vector_file(options.out) ||
                 dtype_of(gnnd::io::format_of(options.out)).value_or(gnnd::DType::i32) != gnnd::DType::i32)
            throw gnnd::IoError(options.out + ": labels are written as " + formats_of(gnnd::DType::i32));
    } catch (const gnnd::IoError& error) {
        throw CLI::ValidationError(error.what());
    }
    require_outputs({options.out}, {options.graph, options.base});
}

void share_parameters(GraphOptions& options) {
    options.threads = allowed_threads(options.threads);
    const auto share = [&](auto& params) {
        params.neighbors = options.neighbors;
        params.threads = options.threads;
        params.device = options.device;
    };
    share(options.edges);
    share(options.jaccard);
    share(options.fuzzy);
    share(options.reachability);
}

void run(const CLI::App& command, GraphOptions options) {
    const Operation& operation = chosen(options.operation);
    require_usage(command, operation, options);
    const AnyGraph file(options.graph);
    if (options.neighbors > file.k())
        throw gnnd::InvalidArgument("-k " + std::to_string(options.neighbors) + ": " + options.graph + " has " +
                                    std::to_string(file.k()) + " neighbours per object");
    if (command.get_option("--radius")->count() > 0) options.edges.radius = options.radius;
    // A graph of a file lies in host memory.
    if (options.device.kind == gnnd::Device::Kind::automatic) options.device = {gnnd::Device::Kind::cpu, 0};
    share_parameters(options);
    const gnnd::KnnGraph graph = file.read();
    gnnd::Callbacks callbacks;
    callbacks.interrupt = [] { return caught_signal() != 0; };
    if (!options.base.empty()) {
        const gnnd::io::VectorFile base(options.base);
        file.require_fit(base);
        options.equal = equal_rows(base.view(), options.threads, callbacks);
        base.require_unchanged();
    }
    const auto start = std::chrono::steady_clock::now();
    const Made made = with_usage_errors([&] { return operation.make(options, graph, callbacks); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    stop_if_interrupted();
    if (operation.labels)
        gnnd::io::write_labels(options.out, made.labels.data(), graph.n());
    else
        gnnd::io::write_csr(options.out, made.matrix, {made.symmetric, options.threads, callbacks.interrupt});

    Json report{{"operation", operation.name},
                {"n", graph.n()},
                {"k", options.neighbors > 0 ? options.neighbors : graph.k()},
                {"metric", name_of(graph.metric())},
                {"device", options.device.name()}};
    report.update(made.report);
    report["seconds"] = seconds.count();
    report["output"] = options.out;
    report["bytes"] = std::filesystem::file_size(options.out);
    if (options.json) {
        print(report);
        return;
    }
    for (const auto& [key, value] : report.items())
        std::printf("%-10s %s\n", key.c_str(), (value.is_string() ? value.get<std::string>() : value.dump()).c_str());
}

}  // namespace

void add_graph_operations(CLI::App& app) {
    CLI::App& command = *app.add_subcommand(
        "graph", "Make a sparse matrix, weights, components or groups of copies of a graph, for other programs");
    const auto options = std::make_shared<GraphOptions>();
    std::vector<std::string> names;
    std::string help, matrices;
    for (const Operation& operation : operations()) {
        help += (names.empty() ? "" : ", ") + operation.name + " (" + operation.help + ")";
        names.push_back(operation.name);
    }
    for (const gnnd::io::CsrFormat format : gnnd::io::kCsrFormats)
        matrices += (matrices.empty() ? "" : " or ") + std::string(name_of(format));
    add_one_of(command, "OP", options->operation, "operation", names, help)->required();
    add_graph(command, options->graph);
    add_output(command, options->out,
               "file to write, its format by the extension: of a matrix " + matrices + ", of numbers " +
                   formats_of(gnnd::DType::i32));
    add_whole(command, "-k,--k", options->neighbors, 0, 65535, "first neighbours of an object that count; 0: all");
    constexpr float kMost = std::numeric_limits<float>::max();
    add_parsed(command, "--values", options->edges.values, gnnd::parse_graph_values, "metric", {"metric", "distance"},
               owners("--values") +
                   "what is written and compared: metric (as in the graph: squared under l2, similarities under ip and "
                   "cosine) or distance (roots under l2, 1 - similarity)");
    add_real(command, "--radius", options->radius, -kMost, kMost,
             owners("--radius") + "entries farther than this do not count; all do where it is not given")
        ->default_str("");
    command.add_flag("--mutual", options->mutual, owners("--mutual") + "pairs count only if they name each other");
    add_real(command, "--threshold", options->threshold, -kMost, kMost,
             owners("--threshold") + "farthest value of a pair of copies; the least under ip and cosine");
    add_name(command, "--base", options->base, "FILE",
             owners("--base") +
                 "the vectors of the graph: rows that are equal to the bit are in one group then, however "
                 "many there are");
    command.add_flag("--include-self", options->jaccard.include_self,
                     owners("--include-self") + "an object is one of its own neighbours");
    add_real(command, "--prune", options->jaccard.prune, 0, 1, owners("--prune") + "least weight that is kept");
    add_real(command, "--local-connectivity", options->fuzzy.local_connectivity, 0, 65535,
             owners("--local-connectivity") + "so many of the nearest neighbours get weight 1");
    add_real(command, "--set-op-mix-ratio", options->fuzzy.set_op_mix_ratio, 0, 1,
             owners("--set-op-mix-ratio") + "1: union, 0: intersection, or between");
    add_real(command, "--bandwidth", options->fuzzy.bandwidth, 1e-6F, 1e6F,
             owners("--bandwidth") + "factor on what a row adds up to");
    add_whole(command, "--min-samples", options->reachability.min_samples, 1, 65535,
              owners("--min-samples") + "the neighbour whose distance is the core distance, the object not counted");
    add_real(command, "--alpha", options->reachability.alpha, 1e-6F, 1e6F,
             owners("--alpha") + "distances, but not core distances, are divided by it");
    add_whole(command, "--threads", options->threads, 0, 4096, "CPU threads; 0: all");
    add_device(command, options->device)->description("auto (the CPU, where files are read to), cpu, cuda or cuda:N");
    add_json(command, options->json);
    command.footer(
        "scipy.sparse.load_npz and scipy.io.mmread read the matrices, numpy.load the numbers. jaccard, fuzzy and\n"
        "reachability write weights and distances, whatever the metric; under ip distances are those of vectors of\n"
        "length 1. full_rows counts the objects all of whose entries are within the radius or threshold: there may be\n"
        "more than the graph tells.\n"
        "Example: gnnd graph fuzzy base.gnnd -k 15 -o weights.npz\n"
        "         gnnd graph duplicates base.gnnd --threshold 0.01 -o groups.npy");
    command.callback([&command, options] { run(command, *options); });
}

}  // namespace cli
