// SPDX-License-Identifier: MIT
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "baseline.h"
#include "build_options.h"
#include "commands.h"
#include "common.h"
#include "files.h"
#include "gnnd/builder.h"
#include "gnnd/device.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "sharded.h"
#include "threads.h"

namespace cli {

namespace {

struct BuildCommand : BuildOptions {
    std::string base, method = "gnnd";
    gnnd::ShardParams shards;
    MethodValues of_methods;
    bool dry_run = false;

    bool exact() const { return method == "exhaustive"; }
};

BaselineOptions baseline_of(const BuildCommand& options, bool iterations_given) {
    BaselineOptions baseline;
    baseline.values = options.of_methods;
    baseline.values["seed"] = std::int64_t(options.params.seed);
    if (iterations_given) baseline.values["iterations"] = options.params.iterations;
    baseline.method = options.method;
    baseline.base = options.base;
    baseline.graph = options.graph;
    baseline.stats = options.stats;
    baseline.k = options.params.k;
    baseline.metric = options.params.metric;
    baseline.device = options.params.device;
    baseline.json = options.json;
    return baseline;
}

/// The words about codes behind the method's.
const char* explain(gnnd::Codes codes) {
    switch (codes) {
        case gnnd::Codes::automatic:
            return ", int8 in place of floats if these allow it";
        case gnnd::Codes::none:
            return "";
        case gnnd::Codes::int8:
            return ", int8 in place of floats";
        case gnnd::Codes::pca:
            return ", int8 of 128 components in place of floats";
    }
    return "";
}

/// Prints what the build would choose, its time and its memory.
void print_plan(const BuildCommand& options) {
    const gnnd::io::VectorFile base(options.base);
    const gnnd::MemoryPlan plan = with_row_names({&base}, [&] {
        return with_usage_errors([&] {
            return gnnd::plan_memory({nullptr, base.n(), base.d(), base.dtype(), 0}, options.params);
        });
    });
    const gnnd::Choices& choices = plan.choices;
    if (options.json) {
        print({{"device", plan.device.name()},
               {"params", to_json(options.params, choices)},
               {"exhaustive", choices.exhaustive},
               {"why", plan.why},
               {"predicted", to_json(plan.predicted)},
               {"parts", choices.parts},
               {"capacity", choices.capacity},
               {"passes", choices.passes},
               {"vectors", plan.vectors},
               {"graph", plan.graph},
               {"work", plan.work},
               {"total", plan.total()},
               {"free", plan.free}});
        return;
    }
    std::printf("device    %s\n", plan.device.name().c_str());
    if (choices.exhaustive && choices.parts > 1)
        std::printf("method    all pairs are compared, in %d parts of which two fit at a time\n", choices.parts);
    else if (choices.exhaustive)
        std::printf("method    all pairs are compared\n");
    else
        std::printf("method    lists of %d, %d samples, %d trees%s\n", choices.list_size, choices.samples,
                    choices.trees, explain(choices.codes));
    std::printf("choice    %s\n", plan.why.c_str());
    std::printf("time      %s\n", to_text(plan.predicted).c_str());
    const auto line = [](const char* name, std::size_t bytes) {
        std::printf("%-9s %15zu bytes  %s\n", name, bytes, human_bytes(std::int64_t(bytes)).c_str());
    };
    line("vectors", plan.vectors);
    line("graph", plan.graph);
    line("work", plan.work);
    line("total", plan.total());
    line("free", plan.free);
}

void run(const BuildCommand& options) {
    validate(options.params);
    if (!options.shards.work.empty()) {
        validate(options.shards);
        const ShardedOptions sharded{options.base,   options.stats, options.params,
                                     options.shards, options.json,  options.quiet};
        if (options.dry_run) return print_sharded_plan(sharded);
        return build_in_shards(sharded, to_json(options.params, {}));
    }
    if (options.dry_run) return print_plan(options);
    require_outputs({options.graph, options.stats}, {options.base});
    require_graph_output(options.graph);
    const gnnd::io::VectorFile base(options.base);
    require_room(options.graph, gnnd::io::graph_file_bytes(base.n(), options.params.k, true, true));
    const Bases bases(base);
    const gnnd::BuildResult result = run_with_progress(options, {&base}, [&](const gnnd::Callbacks& callbacks) {
        return options.exact() ? gnnd::build_exact(base.view(), options.params, callbacks)
                               : gnnd::build(base.view(), options.params, callbacks);
    });
    const Json about{{"graph", options.graph}, {"base", options.base}, {"method", options.method},
                     {"n", base.n()},          {"d", base.d()},        {"dtype", name_of(base.dtype())}};
    finish(options, result, bases.unchanged(), {&base}, about, [&] { print_base(base); });
}

}  // namespace

void build_exhaustively(const BaselineOptions& options) {
    BuildCommand command;
    command.base = options.base;
    command.method = "exhaustive";
    command.graph = options.graph;
    command.stats = options.stats;
    command.params.k = options.k;
    command.params.metric = options.metric;
    command.params.device = options.device;
    command.params.recall = 1;
    command.params.threads = allowed_threads(0);
    command.json = options.json;
    run(command);
}

void add_build(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("build", "Build the k-NN graph of a file of vectors");
    const auto options = std::make_shared<BuildCommand>();
    gnnd::BuildParams& params = options->params;
    add_base(command, options->base);
    add_k(command, params.k, gnnd::kMaxK, "neighbours per object, at most " + std::to_string(gnnd::kMaxK));
    add_output(command, options->graph, "graph file to write; .gnnd by convention")->required(false);
    add_metric(command, params.metric);
    add_method(command, options->method);
    const std::size_t common = command.get_options().size();
    add_params(command, params);
    add_sharded(command, options->shards);
    command.add_flag(
        "--dry-run", options->dry_run,
        "only print what the build would do, and about how much time and memory it would take; with --work "
        "shards, disk and host memory");
    std::vector<std::string> of_gnnd;
    for (std::size_t i = common; i < command.get_options().size(); ++i)
        if (const std::string name = command.get_options()[i]->get_name(); name != "--device") of_gnnd.push_back(name);
    add_method_options(command, options->of_methods);
    add_reporting(command, *options);
    command.footer(
        "An interrupted or failed build writes nothing and leaves an older GRAPH as it was. In shards it keeps what\n"
        "it has done in DIR, whatever ends it, and --resume goes on.\n"
        "Example: gnnd build base.fvecs -k 32 -o base.gnnd\n"
        "         gnnd build huge.u8bin -k 32 --work huge.graph --device-memory 24GB");
    command.callback([options, of_gnnd, &command] {
        options->params.threads = allowed_threads(options->params.threads);
        const bool with_gnnd = options->method == "gnnd" || options->exact();
        const bool in_shards = command.get_option("--work")->count() > 0;
        const bool output_given = command.get_option("--output")->count() > 0;
        if (!in_shards && !output_given && !options->dry_run) throw CLI::RequiredError("--output");
        if (in_shards && output_given)
            throw CLI::ValidationError("--output", "has no meaning with --work, where the graph goes");
        std::vector<std::string> refused = of_gnnd;
        if (options->exact()) {
            options->params.recall = 1;
            std::erase(refused, "--threads");
            std::erase(refused, "--device-memory");
            std::erase(refused, "--dry-run");
        }
        require_method_options(command, options->method, refused);
        if (with_gnnd)
            run(*options);
        else
            build_baseline(baseline_of(*options, command.get_option("--iterations")->count() > 0));
    });
}

}  // namespace cli
