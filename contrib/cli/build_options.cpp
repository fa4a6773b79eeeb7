// SPDX-License-Identifier: MIT
#include "build_options.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <type_traits>

#include "files.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/recall.h"
#include "gnnd/io/detail/moved.h"
#include "gnnd/io/graph_file.h"
#include "interrupt.h"
#include "progress.h"

namespace cli {

namespace {

/// The option of a field of the parameters: its name with dashes, its range and what 0 stands for.
template <class T>
void add_field(CLI::App& app, const gnnd::detail::Field<T>& field, T& value) {
    std::string flag = std::string("--") + field.name, help = field.help;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (field.zero != nullptr) help += std::string("; 0: ") + field.zero;
    if constexpr (std::is_same_v<T, gnnd::Device>) {
        add_device(app, value);
    } else if constexpr (std::is_same_v<T, bool>) {
        app.add_flag(flag, value, help);
    } else if constexpr (std::is_enum_v<T>) {
        const std::string names = gnnd::detail::known_names(value);
        if (help.find(names.substr(0, names.find(','))) == std::string::npos) help += ": " + names;
        const auto parse = [](const std::string& text) {
            T parsed{};
            gnnd::detail::parse(text, parsed);
            return parsed;
        };
        add_parsed(app, flag, value, parse, gnnd::detail::text_of(value), words_of_list(names), help);
    } else if constexpr (std::is_floating_point_v<T>) {
        add_real(app, flag, value, field.low, field.high, help);
    } else {
        if constexpr (std::is_same_v<T, std::int64_t>)
            if (field.counts_bytes) {
                add_bytes(app, flag, value, help);
                return;
            }
        add_whole(app, flag, value, field.zero != nullptr ? T(0) : field.low, field.high, help);
    }
}

Json iteration_json(const gnnd::IterationStats& iteration) {
    return {{"iteration", iteration.iteration}, {"seconds", iteration.seconds}, {"phi", iteration.phi},
            {"changed", iteration.changed},     {"offered", iteration.offered}, {"accepted", iteration.accepted},
            {"distances", iteration.distances}};
}

/// Of the graph itself: the iterations' lists hold rounded distances, and all pairs may have followed them.
double phi_of(gnnd::KnnGraphView graph) {
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
        case gnnd::StopReason::recall:
            return "the recall that was asked for is reached";
        case gnnd::StopReason::exact:
            return "all pairs were compared, the graph is exact";
        case gnnd::StopReason::recall_missed:
            return "the recall that was asked for is not reached, the limits allow no more";
        case gnnd::StopReason::searched:
            return "the graph was searched for all that is new";
    }
    return "";
}

/// The part of the report that follows from the statistics, and phi(G).
Json report(const BuildOptions& options, const gnnd::BuildStats& stats, double phi, const std::string& warning) {
    Json iterations = Json::array();
    for (const gnnd::IterationStats& iteration : stats.iterations) iterations.push_back(iteration_json(iteration));
    Json json{{"params", to_json(options.params, stats.choices)},
              {"device", stats.device.name()},
              {"threads", stats.threads},
              {"stop", name_of(stats.stop)},
              {"phi", phi}};
    json.update(to_json(stats.recall));
    if (stats.recall_all.objects != 0) json["recall_all"] = to_json(stats.recall_all);
    if (stats.recall_added.objects != 0) json["recall_added"] = to_json(stats.recall_added);
    json.update({{"recall_seconds", stats.recall_seconds},
                 {"unresolved", stats.unresolved},
                 {"seconds", stats.seconds},
                 {"peak_work_bytes", stats.peak_work_bytes},
                 {"peak_memory_bytes", peak_memory()},
                 {"iterations", iterations}});
    if (!warning.empty()) json["warning"] = warning;
    return json;
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
    if (stats.choices.codes != gnnd::Codes::none)
        std::printf("codes       %s, in place of floats while building\n",
                    std::string(name_of(stats.choices.codes)).c_str());
    std::printf("phi(G)      %.6g\n", phi);
    if (stats.recall.objects != 0) std::printf("recall      %s\n", gnnd::to_text(stats.recall).c_str());
    if (stats.recall_all.objects != 0) std::printf("  of all    %s\n", gnnd::to_text(stats.recall_all).c_str());
    if (stats.recall_added.objects != 0) std::printf("  added     %s\n", gnnd::to_text(stats.recall_added).c_str());
    if (stats.recall_seconds != 0) std::printf("  measured  in %.3f s of the seconds\n", stats.recall_seconds);
    std::printf("seconds     %.3f\n", stats.seconds);
    std::printf("memory      %s at most, %s of it to work in\n", human_bytes(peak_memory()).c_str(),
                human_bytes(stats.peak_work_bytes).c_str());
    std::printf("graph       %s\n", options.graph.c_str());
}

}  // namespace

void add_params(CLI::App& app, gnnd::BuildParams& params) {
    gnnd::detail::for_each_field([&](const auto& field) {
        if (std::string_view(field.name) != "k" && std::string_view(field.name) != "metric")
            add_field(app, field, params.*field.member);
    });
}

void add_reporting(CLI::App& app, BuildOptions& options) {
    add_name(app, "--stats", options.stats, "FILE", "also write what --json prints to this file");
    add_json(app, options.json);
    app.add_flag("-q,--quiet", options.quiet, "no progress on standard error");
}

Json to_json(const gnnd::BuildParams& params, const gnnd::Choices& choices) {
    Json json;
    gnnd::detail::for_each_field([&]<class T>(const gnnd::detail::Field<T>& field) {
        if (!field.decides_graph) return;
        if constexpr (std::is_enum_v<T> || std::is_same_v<T, gnnd::Device>)
            json[field.name] = gnnd::detail::text_of(field.of(params));
        else if constexpr (std::is_floating_point_v<T>)  // as it was given, not as the nearest float
            json[field.name] = std::stod(gnnd::detail::text_of(field.of(params)));
        else
            json[field.name] = field.of(params);
    });
    if (choices.samples != 0) json["samples"] = choices.samples;
    if (choices.list_size != 0) json["list_size"] = choices.list_size;
    if (choices.trees != 0) json["trees"] = choices.trees;
    if (choices.list_size != 0) json["codes"] = gnnd::detail::text_of(choices.codes);
    return json;
}

Json to_json(const gnnd::RecallEstimate& recall) {
    if (recall.objects == 0) return Json::object();
    return {{"recall", recall.value},
            {"recall_low", recall.low},
            {"recall_high", recall.high},
            {"recall_at", recall.at},
            {"recall_objects", recall.objects}};
}

Json to_json(const gnnd::Prediction& predicted) {
    if (predicted.rates.empty()) return nullptr;
    return {{"all_pairs", predicted.all_pairs}, {"iterations", predicted.iterations}, {"rates", predicted.rates}};
}

std::string shortfall(const gnnd::BuildParams& params, gnnd::StopReason stop, const gnnd::RecallEstimate& recall) {
    if (stop != gnnd::StopReason::recall_missed) return "";
    if (recall.objects != 0 && recall.value >= double(params.recall))  // of a merge: see gnnd/merge.h
        return "one of both sets has less than the recall of " + gnnd::detail::text_of(params.recall) +
               " asked for, together they have " + gnnd::to_text(recall);
    return "the graph's recall is less than the " + gnnd::detail::text_of(params.recall) +
           " asked for: " + gnnd::to_text(recall);
}

std::string warning_of(const gnnd::BuildParams& params, const gnnd::BuildStats& stats) {
    return joined(
        {shortfall(params, stats.stop, stats.recall), gnnd::unresolved_warning(stats.unresolved, params.metric)});
}

std::string joined(const std::vector<std::string>& warnings) {
    std::string all;
    for (const std::string& warning : warnings) all += (all.empty() || warning.empty() ? "" : "; ") + warning;
    return all;
}

void warn(const std::string& warning) {
    if (!warning.empty()) std::fprintf(stderr, "gnnd: warning: %s\n", warning.c_str());
}

gnnd::BuildResult run_with_progress(const BuildOptions& options, const std::vector<const gnnd::io::VectorFile*>& bases,
                                    const std::function<gnnd::BuildResult(const gnnd::Callbacks&)>& run) {
    std::int64_t n = 0;
    for (const gnnd::io::VectorFile* base : bases) n += base->n();
    Progress progress(options.params, n, options.quiet);
    gnnd::Callbacks callbacks;
    callbacks.progress = [&](const gnnd::IterationStats& iteration) { progress.show(iteration); };
    callbacks.interrupt = [] { return caught_signal() != 0; };
    return with_row_names(bases, [&] { return with_usage_errors([&] { return run(callbacks); }); });
}

void print_base(const gnnd::io::VectorFile& base) {
    const std::string from = base.converted_from();
    std::printf("base        %s: %lld x %lld %s%s\n", base.path().c_str(), static_cast<long long>(base.n()),
                static_cast<long long>(base.d()), std::string(name_of(base.dtype())).c_str(),
                from.empty() ? "" : (", converted from " + from).c_str());
}

void finish(const BuildOptions& options, const gnnd::BuildResult& result, const gnnd::io::BaseIdentity& base,
            const std::vector<const gnnd::io::VectorFile*>& files, Json about,
            const std::function<void()>& print_about) {
    stop_if_interrupted();
    const int at = gnnd::detail::recall_at_of(options.params);
    // Before the graph is there: a base that is gone by now fails the whole build.
    const std::string warning = joined({warning_of(options.params, result.stats),
                                        gnnd::io::detail::moved_warning(result.graph.view(), nullptr, at, files[0]->d(),
                                                                        gnnd::io::detail::stored(files))});
    gnnd::io::write_graph(options.graph, result.graph, base, result.stats.recall);
    warn(warning);
    const double phi = phi_of(result.graph);
    about.update(report(options, result.stats, phi, warning));
    if (!options.stats.empty()) write_json(options.stats, about);
    if (options.json) {
        print(about);
        return;
    }
    print_about();
    print_summary(options, result.stats, phi);
}

}  // namespace cli
