// SPDX-License-Identifier: MIT
#include "build_options.h"

#include <charconv>
#include <cstdio>
#include <string_view>

#include "files.h"
#include "gnnd/io/graph_file.h"
#include "interrupt.h"
#include "progress.h"

namespace cli {

namespace {

/// The library counts the objects, "vector 5 holds NaN": which row of which file that is.
std::string name_file(const std::string& error, const std::vector<const gnnd::io::VectorFile*>& bases) {
    constexpr std::string_view kVector = "vector ", kAdded = "append: of the added vectors: vector ";
    const bool added = error.starts_with(kAdded);
    if (!added && !error.starts_with(kVector)) return error;
    const char* begin = error.data() + (added ? kAdded : kVector).size();
    const char* end = error.data() + error.size();
    std::int64_t row = 0;
    const char* rest = std::from_chars(begin, end, row).ptr;
    std::size_t file = added ? bases.size() - 1 : 0;
    for (; file + 1 < bases.size() && row >= bases[file]->n(); ++file) row -= bases[file]->n();
    return bases[file]->path() + ": row " + std::to_string(row) + std::string(rest, end);
}

Json iteration_json(const gnnd::IterationStats& iteration) {
    return {{"iteration", iteration.iteration}, {"seconds", iteration.seconds}, {"phi", iteration.phi},
            {"changed", iteration.changed},     {"offered", iteration.offered}, {"accepted", iteration.accepted},
            {"distances", iteration.distances}};
}

/// Where not all lists went through iterations, the graph tells.
double final_phi(const gnnd::BuildResult& result) {
    const gnnd::BuildStats& stats = result.stats;
    if (!stats.iterations.empty() && stats.stop != gnnd::StopReason::searched) return stats.iterations.back().phi;
    const gnnd::KnnGraphView graph = result.graph;
    double phi = 0;
    for (std::int64_t i = 0; i < graph.n * graph.k; ++i)
        if (graph.ids[i] >= 0) phi += graph.distances[i];
    return phi;
}

/// The initialisation is record 0, not an iteration.
int iterations_run(const gnnd::BuildStats& stats) {
    return stats.iterations.empty() ? 0 : stats.iterations.back().iteration;
}

const char* explain(gnnd::StopReason reason) {
    switch (reason) {
        case gnnd::StopReason::converged:
            return "few entries changed in the last one";
        case gnnd::StopReason::iterations:
            return "the limit";
        case gnnd::StopReason::exhaustive:
            return "the set is small: all pairs were compared, the graph is exact";
        case gnnd::StopReason::searched:
            return "the graph was searched for all that is new";
    }
    return "";
}

/// What of the report follows from the statistics, and phi(G).
Json report(const BuildOptions& options, const gnnd::BuildStats& stats, double phi) {
    Json iterations = Json::array();
    for (const gnnd::IterationStats& iteration : stats.iterations) iterations.push_back(iteration_json(iteration));
    return {{"params", to_json(options.params, stats.choices)},
            {"device", stats.device.name()},
            {"threads", stats.threads},
            {"stop", name_of(stats.stop)},
            {"phi", phi},
            {"seconds", stats.seconds},
            {"peak_work_bytes", stats.peak_work_bytes},
            {"peak_memory_bytes", peak_memory()},
            {"iterations", iterations}};
}

void print_summary(const BuildOptions& options, const gnnd::BuildStats& stats, double phi) {
    if (stats.device.kind == gnnd::Device::Kind::cuda)
        std::printf("device      %s\n", stats.device.name().c_str());
    else
        std::printf("device      cpu, %d threads%s\n", stats.threads,
                    stats.device_reason.empty() ? "" : (" (" + stats.device_reason + ")").c_str());
    const bool searched = stats.stop == gnnd::StopReason::searched;
    std::printf("%s  %d, stopped: %s (%s)\n", searched ? "batches   " : "iterations",
                searched ? int(stats.iterations.size()) : iterations_run(stats),
                std::string(name_of(stats.stop)).c_str(), explain(stats.stop));
    std::printf("phi(G)      %.6g\n", phi);
    std::printf("seconds     %.3f\n", stats.seconds);
    std::printf("memory      %s at most, %s of it to work in\n", human_bytes(peak_memory()).c_str(),
                human_bytes(stats.peak_work_bytes).c_str());
    std::printf("graph       %s\n", options.graph.c_str());
}

}  // namespace

void add_params(CLI::App& app, gnnd::BuildParams& params) {
    add_whole(app, "--samples", params.samples, 0, gnnd::kMaxK,
              "NEW and OLD samples per list, the paper's p; 0: chosen from k");
    add_whole(app, "--iterations", params.iterations, 0, 1'000'000'000, "at most so many iterations");
    add_real(app, "--delta", params.delta, 0, 1,
             "stop when fewer than delta * n * k entries change in one, in a merge 40 * delta * n1 * n2 * k / n; 0: "
             "never");
    add_whole(app, "--list-size", params.list_size, 0, gnnd::kMaxK,
              "length of the lists while building, at least k; 0: chosen from k");
    add_parsed(app, "--init", params.init, gnnd::parse_init, std::string(name_of(params.init)),
               "what the lists start from: random or projection (random-projection trees)");
    add_whole(app, "--trees", params.trees, 0, 1024, "number of projection trees; 0: as many as pay");
    add_parsed(app, "--update", params.update, gnnd::parse_update, std::string(name_of(params.update)),
               "auto (the fastest), selective (the paper's) or all (classic NN-Descent)");
    add_parsed(app, "--locks", params.locks, gnnd::parse_locks, std::string(name_of(params.locks)),
               "what a spinlock covers on a GPU with --update selective: segment (of 32 entries) or list");
    add_seed(app, params.seed, "of all random choices");
    app.add_flag("--deterministic", params.deterministic,
                 "the same seed gives the same graph bit for bit on a GPU too, more slowly; on the CPU it always does");
    add_whole(app, "--threads", params.threads, 0, 4096, "CPU threads; 0: all");
    add_device(app, params.device);
    add_bytes(app, "--device-memory", params.device_memory,
              "most GPU memory to take; less makes the build slower; 0: what is free");
}

void add_reporting(CLI::App& app, BuildOptions& options) {
    add_name(app, "--stats", options.stats, "FILE", "also write what --json prints to this file");
    add_json(app, options.json);
    app.add_flag("-q,--quiet", options.quiet, "no progress on standard error");
}

Json to_json(const gnnd::BuildParams& params, const gnnd::Choices& choices) {
    return {{"k", params.k},
            {"metric", name_of(params.metric)},
            {"samples", choices.samples},
            {"list_size", choices.list_size},
            {"iterations", params.iterations},
            {"delta", params.delta},
            {"seed", params.seed},
            {"deterministic", params.deterministic},
            {"update", name_of(params.update)},
            {"locks", name_of(params.locks)},
            {"init", name_of(params.init)},
            {"trees", params.trees}};
}

gnnd::BuildResult run_with_progress(const BuildOptions& options, const std::vector<const gnnd::io::VectorFile*>& bases,
                                    const std::function<gnnd::BuildResult(const gnnd::Callbacks&)>& run) {
    std::int64_t n = 0;
    for (const gnnd::io::VectorFile* base : bases) n += base->n();
    Progress progress(options.params, n, options.quiet);
    gnnd::Callbacks callbacks;
    callbacks.progress = [&](const gnnd::IterationStats& iteration) { progress.show(iteration); };
    callbacks.interrupt = [] { return caught_signal() != 0; };
    try {
        return run(callbacks);
    } catch (const gnnd::InvalidArgument& error) {
        throw gnnd::InvalidArgument(name_file(error.what(), bases));
    }
}

void print_base(const gnnd::io::VectorFile& base) {
    const std::string from = base.converted_from();
    std::printf("base        %s: %lld x %lld %s%s\n", base.path().c_str(), static_cast<long long>(base.n()),
                static_cast<long long>(base.d()), std::string(name_of(base.dtype())).c_str(),
                from.empty() ? "" : (", converted from " + from).c_str());
}

void finish(const BuildOptions& options, const gnnd::BuildResult& result, const gnnd::io::BaseIdentity& base,
            Json about, const std::function<void()>& print_about) {
    stop_if_interrupted();
    gnnd::io::write_graph(options.graph, result.graph, base);
    const double phi = final_phi(result);
    about.update(report(options, result.stats, phi));
    if (!options.stats.empty()) write_json(options.stats, about);
    if (options.json) {
        print(about);
        return;
    }
    print_about();
    print_summary(options, result.stats, phi);
}

}  // namespace cli
