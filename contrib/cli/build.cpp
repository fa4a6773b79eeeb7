#include <cstdio>
#include <memory>

#include "baseline.h"
#include "commands.h"
#include "common.h"
#include "files.h"
#include "gnnd/builder.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "progress.h"
#include "sharded.h"

namespace cli {

namespace {

struct BuildOptions {
    std::string base, graph, stats, method = "gnnd";
    gnnd::BuildParams params;
    gnnd::ShardParams shards;
    faiss_ext::IvfpqParams ivfpq;
    bool json = false, quiet = false, dry_run = false;
};

Json to_json(const gnnd::BuildParams& params, int samples) {
    return {{"k", params.k},
            {"metric", name_of(params.metric)},
            {"samples", samples},
            {"list_size", params.resolved_list_size()},
            {"iterations", params.iterations},
            {"delta", params.delta},
            {"seed", params.seed},
            {"deterministic", params.deterministic},
            {"update", name_of(params.update)},
            {"locks", name_of(params.locks)},
            {"init", name_of(params.init)},
            {"trees", params.trees}};
}

Json to_json(const gnnd::IterationStats& iteration) {
    return {{"iteration", iteration.iteration}, {"seconds", iteration.seconds}, {"phi", iteration.phi},
            {"changed", iteration.changed},     {"offered", iteration.offered}, {"accepted", iteration.accepted},
            {"distances", iteration.distances}};
}

double final_phi(const gnnd::BuildStats& stats) {
    return stats.iterations.empty() ? 0 : stats.iterations.back().phi;
}

/// The initialisation is record 0, not an iteration.
int iterations_run(const gnnd::BuildStats& stats) {
    return stats.iterations.empty() ? 0 : stats.iterations.back().iteration;
}

BaselineOptions baseline_of(const BuildOptions& options, bool iterations_given) {
    BaselineOptions baseline;
    baseline.method = options.method;
    baseline.base = options.base;
    baseline.graph = options.graph;
    baseline.stats = options.stats;
    baseline.k = options.params.k;
    baseline.metric = options.params.metric;
    baseline.device = options.params.device;
    baseline.ivfpq = options.ivfpq;
    baseline.ivfpq.seed = baseline.nndescent.seed = options.params.seed;
    if (iterations_given) baseline.nndescent.iterations = options.params.iterations;
    baseline.json = options.json;
    return baseline;
}

Json report(const BuildOptions& options, const gnnd::io::VectorFile& base, const gnnd::BuildStats& stats) {
    Json iterations = Json::array();
    for (const gnnd::IterationStats& iteration : stats.iterations) iterations.push_back(to_json(iteration));
    return {{"graph", options.graph},
            {"base", options.base},
            {"method", options.method},
            {"n", base.n()},
            {"d", base.d()},
            {"dtype", name_of(base.dtype())},
            {"params", to_json(options.params, stats.samples)},
            {"device", stats.device.name()},
            {"threads", stats.threads},
            {"stop", name_of(stats.stop)},
            {"phi", final_phi(stats)},
            {"seconds", stats.seconds},
            {"peak_work_bytes", stats.peak_work_bytes},
            {"peak_memory_bytes", peak_memory()},
            {"iterations", iterations}};
}

const char* explain(gnnd::StopReason reason) {
    switch (reason) {
        case gnnd::StopReason::converged:
            return "few entries changed in the last one";
        case gnnd::StopReason::iterations:
            return "the limit";
        case gnnd::StopReason::exhaustive:
            return "the set is small: all pairs were compared, the graph is exact";
    }
    return "";
}

void print_summary(const BuildOptions& options, const gnnd::io::VectorFile& base, const gnnd::BuildStats& stats) {
    std::printf("base        %s: %lld x %lld %s\n", options.base.c_str(), static_cast<long long>(base.n()),
                static_cast<long long>(base.d()), std::string(name_of(base.dtype())).c_str());
    if (stats.device.kind == gnnd::Device::Kind::cuda)
        std::printf("device      %s\n", stats.device.name().c_str());
    else
        std::printf("device      cpu, %d threads%s\n", stats.threads,
                    stats.device_reason.empty() ? "" : (" (" + stats.device_reason + ")").c_str());
    std::printf("iterations  %d, stopped: %s (%s)\n", iterations_run(stats), std::string(name_of(stats.stop)).c_str(),
                explain(stats.stop));
    std::printf("phi(G)      %.6g\n", final_phi(stats));
    std::printf("seconds     %.3f\n", stats.seconds);
    std::printf("memory      %s at most, %s of it to work in\n", human_bytes(peak_memory()).c_str(),
                human_bytes(stats.peak_work_bytes).c_str());
    std::printf("graph       %s\n", options.graph.c_str());
}

/// What the build would take on the GPU.
void print_plan(const BuildOptions& options) {
    if (options.params.device.kind == gnnd::Device::Kind::cpu)
        throw CLI::ValidationError("--dry-run plans the memory of a GPU; --device cpu has none");
    const gnnd::io::VectorFile base(options.base);
    const gnnd::MemoryPlan plan = gnnd::plan_memory({nullptr, base.n(), base.d(), base.dtype(), 0}, options.params);
    if (options.json) {
        print({{"vectors", plan.vectors},
               {"graph", plan.graph},
               {"work", plan.work},
               {"total", plan.total()},
               {"free", plan.free}});
        return;
    }
    const auto line = [](const char* name, std::size_t bytes) {
        std::printf("%-9s %15zu bytes  %s\n", name, bytes, human_bytes(std::int64_t(bytes)).c_str());
    };
    line("vectors", plan.vectors);
    line("graph", plan.graph);
    line("work", plan.work);
    line("total", plan.total());
    line("free", plan.free);
}

void run(const BuildOptions& options) {
    try {
        options.params.validate();
    } catch (const gnnd::InvalidArgument& error) {
        throw CLI::ValidationError(error.what());
    }
    if (!options.shards.work.empty()) {
        const ShardedOptions sharded{options.base,   options.stats, options.params,
                                     options.shards, options.json,  options.quiet};
        if (options.dry_run) return print_sharded_plan(sharded);
        return build_in_shards(sharded, to_json(options.params, options.params.samples));
    }
    if (options.dry_run) return print_plan(options);
    require_writable(options.graph);
    if (!options.stats.empty()) require_writable(options.stats);

    const gnnd::io::VectorFile base(options.base);
    gnnd::BuildResult result;
    {
        Progress progress(options.params, base.n(), options.quiet);
        gnnd::Callbacks callbacks;
        callbacks.progress = [&](const gnnd::IterationStats& iteration) { progress.show(iteration); };
        callbacks.interrupt = [] { return caught_signal() != 0; };
        result = gnnd::build(base.view(), options.params, callbacks);
    }
    stop_if_interrupted();
    gnnd::io::write_graph(options.graph, result.graph, base.dtype());

    const Json json = report(options, base, result.stats);
    if (!options.stats.empty()) write_json(options.stats, json);
    if (options.json)
        print(json);
    else
        print_summary(options, base, result.stats);
}

}  // namespace

void add_build(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("build", "Build the k-NN graph of a file of vectors");
    const auto options = std::make_shared<BuildOptions>();
    gnnd::BuildParams& params = options->params;
    add_base(command, options->base);
    add_k(command, params.k, "neighbours per object, at most " + std::to_string(gnnd::kMaxK));
    add_output(command, options->graph, "graph file to write; .gnnd by convention")->required(false);
    add_metric(command, params.metric);
    command
        .add_option(
            "--method", options->method,
            "gnnd; or what it is compared with: exact (FAISS's flat search), ivfpq (FAISS's, as in the paper) or "
            "nndescent (FAISS's, on the CPU)")
        ->type_name("NAME")
        ->check(CLI::IsMember({"gnnd", "exact", "ivfpq", "nndescent"}))
        ->capture_default_str();
    command.add_option("--samples", params.samples, "NEW and OLD samples per list, the paper's p; 0: chosen from k")
        ->capture_default_str();
    command
        .add_option("--iterations", params.iterations, "at most so many iterations; nndescent: so many, 10 by default")
        ->capture_default_str();
    command.add_option("--delta", params.delta, "stop when fewer than delta * n * k entries change in one; 0: never")
        ->capture_default_str();
    command
        .add_option("--list-size", params.list_size, "length of the lists while building, at least k; 0: chosen from k")
        ->capture_default_str();
    add_parsed(command, "--init", params.init, gnnd::parse_init, std::string(name_of(params.init)),
               "what the lists start from: random or projection (random-projection trees)");
    command.add_option("--trees", params.trees, "number of projection trees; 0: as many as pay")->capture_default_str();
    add_parsed(command, "--update", params.update, gnnd::parse_update, std::string(name_of(params.update)),
               "auto (the fastest), selective (the paper's) or all (classic NN-Descent)");
    add_parsed(command, "--locks", params.locks, gnnd::parse_locks, std::string(name_of(params.locks)),
               "what a spinlock covers on a GPU with --update selective: segment (of 32 entries) or list");
    command.add_option("--seed", params.seed, "of all random choices")->capture_default_str();
    command.add_flag(
        "--deterministic", params.deterministic,
        "the same seed gives the same graph bit for bit on a GPU too, more slowly; on the CPU it always does");
    command.add_option("--threads", params.threads, "CPU threads; 0: all")->capture_default_str();
    add_device(command, params.device);
    command
        .add_option("--device-memory", params.device_memory,
                    "most GPU memory to take, in bytes or as 8GiB; less makes the build slower; 0: what is free")
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    add_sharded(command, options->shards);
    command.add_flag("--dry-run", options->dry_run,
                     "only print the GPU memory that the build would take; with --shards disk and host memory");
    command.add_option("--nlist", options->ivfpq.nlist, "ivfpq: coarse centroids; 0: 4 sqrt(n), at most 65536")
        ->capture_default_str();
    command.add_option("--code-bytes", options->ivfpq.code_bytes, "ivfpq: bytes of a vector's code")
        ->capture_default_str();
    command.add_option("--nprobe", options->ivfpq.nprobe, "ivfpq: lists visited by a query")->capture_default_str();
    command.add_option("--stats", options->stats, "also write what --json prints to this file")->type_name("FILE");
    add_json(command, options->json);
    command.add_flag("-q,--quiet", options->quiet, "no progress on standard error");
    command.footer(
        "An interrupted or failed build writes nothing and leaves an older GRAPH as it was. In shards it keeps what\n"
        "it has done in DIR, whatever ends it, and --resume goes on.\n"
        "Example: gnnd build base.fvecs -k 32 -o base.gnnd\n"
        "         gnnd build huge.u8bin -k 32 --shards 16 --work huge.graph");
    command.callback([options, &command] {
        const bool with_gnnd = options->method == "gnnd";
        const bool in_shards = command.get_option("--shards")->count() > 0;
        const bool output_given = command.get_option("--output")->count() > 0;
        if (!in_shards && !output_given) throw CLI::RequiredError("--output");
        if (in_shards && output_given)
            throw CLI::ValidationError("--output", "has no meaning with --shards: the graph goes to --work");
        const auto only_for = [&](const char* method, std::initializer_list<const char*> names) {
            for (const char* name : names)
                if (command.get_option(name)->count() > 0 && options->method != method)
                    throw CLI::ValidationError(name, "has no meaning for --method " + options->method);
        };
        only_for("gnnd", {"--samples", "--delta", "--list-size", "--init", "--trees", "--update", "--locks",
                          "--deterministic", "--threads", "--device-memory", "--dry-run", "--shards"});
        only_for("ivfpq", {"--nlist", "--code-bytes", "--nprobe"});
        const bool iterations_given = command.get_option("--iterations")->count() > 0;
        if (iterations_given && !with_gnnd) only_for("nndescent", {"--iterations"});
        if (options->method == "exact" && command.get_option("--seed")->count() > 0)
            throw CLI::ValidationError("--seed", "has no meaning for --method exact");
        if (options->method == "nndescent" && options->params.device.kind == gnnd::Device::Kind::cuda)
            throw CLI::ValidationError("--device", "FAISS has nndescent on the CPU only");
        if (with_gnnd)
            run(*options);
        else
            build_baseline(baseline_of(*options, iterations_given));
    });
}

}  // namespace cli
