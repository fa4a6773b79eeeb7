// SPDX-License-Identifier: MIT
#include "sharded.h"

#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "build_options.h"
#include "files.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"

namespace cli {

namespace {

std::string gigabytes(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f GB", double(bytes) * 1e-9);
    return text;
}

std::string time_left(double seconds) {
    char text[32] = "time left unknown";
    if (seconds >= 0)
        std::snprintf(text, sizeof text, seconds < 100 ? "%.0f s left" : "%.1f min left",
                      seconds < 100 ? seconds : seconds / 60);
    return text;
}

std::string traffic(std::uint64_t read, std::uint64_t written) {
    return gigabytes(read) + " read, " + gigabytes(written) + " written";
}

/// A line on standard error at most once a second, and one more per worker where there are several.
class ShardedProgress {
  public:
    explicit ShardedProgress(bool quiet) : quiet_(quiet) {}

    void show(const gnnd::ShardProgress& progress) {
        const auto now = std::chrono::steady_clock::now();
        const bool last = progress.tasks_done == progress.tasks;
        if (quiet_ || (shown_ && !last && now - *shown_ < std::chrono::seconds(1))) return;
        shown_ = now;
        // How many are left is not told: with hundreds of thousands the line would be wider than a terminal.
        std::fprintf(stderr, "%d of %d tasks done, %s, %s\n", progress.tasks_done, progress.tasks,
                     time_left(progress.seconds_left).c_str(),
                     traffic(progress.bytes_read, progress.bytes_written).c_str());
        if (progress.workers.size() < 2) return;
        for (const gnnd::WorkerProgress& worker : progress.workers)
            std::fprintf(stderr, "  %s: %s, %d done, %d left, %s\n", worker.device.name().c_str(),
                         worker.task.empty() ? "waiting" : worker.task.c_str(), worker.done, worker.left,
                         traffic(worker.bytes_read, worker.bytes_written).c_str());
    }

  private:
    bool quiet_;
    std::optional<std::chrono::steady_clock::time_point> shown_;
};

Json sharded_report(const ShardedOptions& options, const gnnd::io::VectorFile& base, const gnnd::ShardedStats& stats,
                    Json params) {
    params["samples"] = stats.samples;
    Json workers = Json::array();
    for (const gnnd::WorkerProgress& worker : stats.progress.workers)
        workers.push_back({{"device", worker.device.name()},
                           {"tasks", worker.done},
                           {"build_seconds", worker.build_seconds},
                           {"merge_seconds", worker.merge_seconds},
                           {"bytes_read", worker.bytes_read},
                           {"bytes_written", worker.bytes_written}});
    Json json{{"graph", options.shards.work},
              {"base", options.base},
              {"method", "gnnd"},
              {"n", base.n()},
              {"d", base.d()},
              {"dtype", name_of(base.dtype())},
              {"shards", stats.shards},
              {"plan", name_of(options.shards.plan)},
              {"merges", stats.merges},
              {"params", params},
              {"tasks", stats.progress.tasks},
              {"stop", name_of(stats.stop)}};
    json.update(to_json(stats.recall));
    json.update({{"recall_seconds", stats.recall_seconds},
                 {"seconds", stats.progress.seconds},
                 {"seconds_of_all_runs", stats.seconds},
                 {"bytes_read", stats.progress.bytes_read},
                 {"bytes_written", stats.progress.bytes_written},
                 {"graph_bytes", stats.written_bytes},
                 {"peak_host_bytes", stats.peak_host_bytes},
                 {"peak_work_bytes", stats.peak_work_bytes},
                 {"peak_memory_bytes", peak_memory()},
                 {"workers", workers}});
    const std::string warning = shortfall(options.params, stats.stop, stats.recall);
    if (!warning.empty()) json["warning"] = warning;
    return json;
}

}  // namespace

void add_sharded(CLI::App& app, gnnd::ShardParams& shards) {
    CLI::Option* work = add_name(app, "--work", shards.work, "DIR",
                                 "build in shards, merged pair by pair (GGM), for more vectors or a larger graph than "
                                 "memory holds: the folder for them, and for what is needed to go on");
    add_whole(app, "--shards", shards.shards, 0, 1024,
              "so many; 0: as few as --device-memory and --host-memory, or what there is, allow")
        ->needs(work);
    std::vector<std::string> plans;
    for (const gnnd::MergePlan plan : gnnd::kMergePlans) plans.emplace_back(name_of(plan));
    add_parsed(
        app, "--plan", shards.plan, gnnd::parse_merge_plan, std::string(name_of(shards.plan)), plans,
        "which shards are merged: all with all, or, cut by a partition of the space, those near each other, until "
        "--recall is reached")
        ->needs(work);
    const auto parse_id_bytes = [](const std::string& text) {
        if (text != "0" && text != "4" && text != "8")
            throw gnnd::InvalidArgument("'" + text + "' is not one of 0, 4 and 8");
        return std::stoi(text);
    };
    add_parsed(app, "--id-bytes", shards.id_bytes, parse_id_bytes, "0", {"0", "4", "8"},
               "bytes of an id in the graph's files: 4, of up to 2^31 - 1 vectors, or 8; 0: as few as there must be")
        ->needs(work);
    app.add_flag("--resume", shards.resume,
                 "go on with what an interrupted or killed build has left in --work; start where there is nothing")
        ->needs(work);
    add_bytes(app, "--host-memory", shards.host_memory,
              "most host memory to take beside the program itself; 0: three quarters of the machine's or of the "
              "container's")
        ->needs(work);
    add_real(
        app, "--checkpoint", shards.checkpoint_seconds, 0, std::numeric_limits<double>::infinity(),
        "make results durable so often, in seconds; 0: after every build and merge; inf: finished lists alone, which "
        "takes least room in --work")
        ->needs(work);
    const auto set_devices = [&shards](const std::string& names) {
        shards.devices.clear();
        try {
            for (const std::string& name : words_of_list(names, ","))
                shards.devices.push_back(gnnd::Device::parse(name));
        } catch (const gnnd::InvalidArgument& error) {
            throw CLI::ValidationError("--devices", error.what());
        }
    };
    app.add_option_function<std::string>("--devices", set_devices,
                                         "instead of --device: several for a build in shards, as in cuda:0,cuda:1")
        ->type_name("NAMES")
        ->needs(work);
}

void build_in_shards(const ShardedOptions& options, const Json& params_json) {
    require_outputs({options.stats}, {options.base}, options.shards.work);
    const gnnd::io::VectorFile base(options.base);
    ShardedProgress progress(options.quiet);
    gnnd::ShardCallbacks callbacks;
    callbacks.progress = [&](const gnnd::ShardProgress& now) { progress.show(now); };
    callbacks.interrupt = [] { return caught_signal() != 0; };
    gnnd::ShardedStats stats;
    try {
        stats = with_row_names({&base}, [&] {
            return with_usage_errors(
                [&] { return gnnd::build_sharded(base, options.params, options.shards, callbacks); });
        });
    } catch (const gnnd::Interrupted&) {
        throw Resumable("interrupted; the same command with --resume goes on");
    }
    warn(shortfall(options.params, stats.stop, stats.recall));
    const Json json = sharded_report(options, base, stats, params_json);
    if (!options.stats.empty()) write_json(options.stats, json);
    if (options.json) {
        print(json);
        return;
    }
    print_base(base);
    std::printf("tasks       %d, of %d shards\n", stats.progress.tasks, stats.shards);
    if (stats.recall.objects != 0) std::printf("recall      %s\n", gnnd::to_text(stats.recall).c_str());
    std::printf("seconds     %.3f", stats.progress.seconds);
    if (options.shards.resume) std::printf(", %.3f with earlier runs", stats.seconds);
    std::printf("\n");
    std::printf("disk        %s\n", traffic(stats.progress.bytes_read, stats.progress.bytes_written).c_str());
    std::printf("memory      %s at most, %s of it for shards\n", human_bytes(peak_memory()).c_str(),
                human_bytes(std::int64_t(stats.peak_host_bytes)).c_str());
    std::printf("graph       %s\n", options.shards.work.c_str());
}

void print_sharded_plan(const ShardedOptions& options) {
    const gnnd::io::VectorFile base(options.base);
    const gnnd::ShardedPlan plan = with_row_names({&base}, [&] {
        return with_usage_errors([&] { return gnnd::plan_sharded(base, options.params, options.shards); });
    });
    if (options.json) {
        print({{"builds", plan.builds},
               {"merges", plan.merges},
               {"disk", plan.disk},
               {"sample", plan.sample},
               {"host_least", plan.host},
               {"host_overlapped", plan.host_overlapped}});
        return;
    }
    std::printf("shards      %d\n", plan.builds);
    std::printf("tasks       %d builds, %s%d merges\n", plan.builds,
                options.shards.plan == gnnd::MergePlan::near ? "at most " : "", plan.merges);
    std::printf("disk        %s\n", human_bytes(std::int64_t(plan.disk)).c_str());
    std::printf("host        %s at least, %s to read and merge at the same time\n",
                human_bytes(std::int64_t(plan.host)).c_str(), human_bytes(std::int64_t(plan.host_overlapped)).c_str());
}

}  // namespace cli
