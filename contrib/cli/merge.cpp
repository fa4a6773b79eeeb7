// SPDX-License-Identifier: MIT
// merge, append and refine: two graphs become one, or a graph and vectors, or a graph becomes a better one.
#include "gnnd/merge.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "any_graph.h"
#include "build_options.h"
#include "commands.h"
#include "files.h"
#include "gnnd/detail/right_distances.h"
#include "threads.h"

namespace cli {

namespace {

struct MergeOptions : BuildOptions {
    const char* method;
    std::vector<std::string> bases, graphs;  ///< append has a graph of the first base only, refine one of both
    bool k_given = false;
    gnnd::AppendMethod append_method = gnnd::AppendMethod::automatic;
};

void run(MergeOptions& options) {
    require_outputs({options.graph, options.stats}, options.bases);  // a graph may be replaced
    require_outputs({options.stats}, options.graphs);
    require_graph_output(options.graph);
    std::vector<AnyGraph> files;
    std::vector<gnnd::io::VectorFile> bases;
    for (const std::string& path : options.graphs) files.emplace_back(path);
    for (const std::string& path : options.bases) bases.emplace_back(path);
    options.params.metric = files[0].metric();
    for (std::size_t g = 0; g < files.size(); ++g) {
        files[g].require_fit(bases[g]);
        if (files[g].metric() != files[0].metric())
            throw gnnd::InvalidArgument(options.graphs[0] + " was made under " +
                                        std::string(name_of(files[0].metric())) + ", " + options.graphs[g] + " under " +
                                        std::string(name_of(files[g].metric())) +
                                        "; only graphs of one metric can be merged");
        if (!options.k_given)
            options.params.k = int(g == 0 ? files[g].k() : std::min<std::int64_t>(options.params.k, files[g].k()));
    }
    validate(options.params);
    std::vector<gnnd::KnnGraph> graphs;
    for (std::size_t g = 0; g < files.size(); ++g) {
        graphs.push_back(files[g].read());
        // Two sets of as many vectors may be mistaken for each other.
        gnnd::detail::check_distances(graphs[g], options.graphs[g], bases[g].view(), bases[g].path());
    }

    std::int64_t n = 0;
    std::vector<const gnnd::io::VectorFile*> in_order;
    for (const gnnd::io::VectorFile& base : bases) {
        n += base.n();
        in_order.push_back(&base);
    }
    require_room(options.graph, gnnd::io::graph_file_bytes(n, options.params.k, true, true));
    const Bases both(bases);
    const gnnd::BuildResult result = run_with_progress(options, in_order, [&](const gnnd::Callbacks& callbacks) {
        return bases.size() == 1 ? gnnd::refine(bases[0].view(), graphs[0], options.params, callbacks)
               : graphs.size() == 1
                   ? gnnd::append(bases[0].view(), graphs[0], bases[1].view(), options.params, callbacks, nullptr,
                                  options.append_method)
                   : gnnd::merge(bases[0].view(), graphs[0], bases[1].view(), graphs[1], options.params, callbacks);
    });
    const Json about{{"graph", options.graph},
                     {"graphs", options.graphs},
                     {"bases", options.bases},
                     {"method", options.method},
                     {"n", n},
                     {"d", bases[0].d()},
                     {"dtype", name_of(bases[0].dtype())}};
    finish(options, result, both.unchanged(), in_order, about, [&] {
        for (const gnnd::io::VectorFile& base : bases) print_base(base);
    });
}

/// Adds the options that merge, append and refine share, behind the files to read.
void add_merge_options(CLI::App& command, const std::shared_ptr<MergeOptions>& options, const std::string& default_k) {
    const CLI::Option* k =
        add_k(command, options->params.k, gnnd::kMaxK, "neighbours per object; by default " + default_k)
            ->default_str("");
    add_output(command, options->graph, "graph file to write; .gnnd by convention");
    add_params(command, options->params);
    add_reporting(command, *options);
    command.callback([options, k] {
        options->k_given = k->count() > 0;
        options->params.threads = allowed_threads(options->params.threads);
        run(*options);
    });
}

}  // namespace

void add_merge(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("merge", "Merge the graphs of two files of vectors (GGM)");
    const auto options = std::make_shared<MergeOptions>();
    options->method = "merge";
    options->graphs.resize(2);
    options->bases.resize(2);
    for (const int set : {0, 1}) {
        const std::string number = std::to_string(set + 1);
        add_graph(command, options->graphs[set], "GRAPH" + number);
        add_base(command, options->bases[set], "BASE" + number);
    }
    add_merge_options(command, options, "the smaller of both graphs'");
    command.footer(
        "The result is a graph over the vectors of BASE1 followed by those of BASE2, under the graphs' metric. With a\n"
        "larger k than a graph has its rows are filled with what is found, which need not be the nearest.\n"
        "An interrupted or failed merge writes nothing.\n"
        "Example: gnnd merge a.gnnd a.fvecs b.gnnd b.fvecs -o both.gnnd");
}

void add_append(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("append", "Add vectors to a graph");
    const auto options = std::make_shared<MergeOptions>();
    options->method = "append";
    options->graphs.resize(1);
    options->bases.resize(2);
    add_graph(command, options->graphs[0]);
    add_base(command, options->bases[0]);
    add_base(command, options->bases[1], "NEW");
    using Method = gnnd::AppendMethod;
    std::vector<std::string> methods;
    for (const Method method : {Method::automatic, Method::merge, Method::search})
        methods.emplace_back(name_of(method));
    add_parsed(command, "--method", options->append_method, gnnd::parse_append_method,
               std::string(name_of(options->append_method)), methods,
               "search (look every new vector up in the graph), merge (build the graph of the new ones and merge) or "
               "auto (search for up to " +
                   std::to_string(int(gnnd::kSearchedShare * 100)) + "% new ones)");
    add_merge_options(command, options, "the graph's");
    command.footer(
        "The result is a graph over the vectors of BASE followed by those of NEW, under the graph's metric. A few\n"
        "vectors are searched for, which takes time by their number; of many a graph is built and merged, which takes\n"
        "half as long as a build of all for a few percent, and no less than it for as many as there are. With a\n"
        "larger k than the graph has rows are filled with what is found, which need not be the nearest.\n"
        "When interrupted or failed it writes nothing.\n"
        "Example: gnnd append base.gnnd base.fvecs new.fvecs -o all.gnnd");
}

void add_refine(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("refine", "Improve a graph by further iterations");
    const auto options = std::make_shared<MergeOptions>();
    options->method = "refine";
    options->graphs.resize(1);
    options->bases.resize(1);
    add_graph(command, options->graphs[0]);
    add_base(command, options->bases[0]);
    add_merge_options(command, options, "the graph's");
    for (const char* unused : {"--init", "--trees"}) command.remove_option(command.get_option(unused));
    command.footer(
        "GNND starts from the graph, under whose metric it goes on, instead of from lists of its own. With a larger k\n"
        "than the graph has the rows are filled. When interrupted or failed it writes nothing; OUT may be GRAPH.\n"
        "Example: gnnd refine base.gnnd base.fvecs --list-size 64 -o better.gnnd");
}

}  // namespace cli
