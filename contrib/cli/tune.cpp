// SPDX-License-Identifier: MIT
#include "gnnd/tune.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "build_options.h"
#include "commands.h"
#include "common.h"
#include "files.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/io/vector_file.h"
#include "interrupt.h"
#include "progress.h"
#include "threads.h"

namespace cli {

namespace {

struct TuneCommand : BuildOptions {
    std::string base;
    gnnd::TuneParams how;
};

template <class... Values>
std::string formatted(const char* format, Values... values) {
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    return text.data();
}

std::string with_commas(std::int64_t number) {
    std::string text = std::to_string(number);
    for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(std::size_t(at), 1, ',');
    return text;
}

/// Of the shell: a name of harmless characters as it is, any other in quotes.
std::string quoted(const std::string& name) {
    const auto harmless = [](unsigned char c) {
        return std::isalnum(c) != 0 || std::string_view("/._-+,:=@").find(char(c)) != std::string_view::npos;
    };
    if (std::all_of(name.begin(), name.end(), harmless)) return name;
    std::string text = "'";
    for (const char c : name) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// The build with these parameters, as one types it.
std::string command_line(const std::string& base, const gnnd::BuildParams& params) {
    std::string line = "gnnd build " + quoted(base) + " -k " + std::to_string(params.k);
    gnnd::detail::for_each_field([&]<class T>(const gnnd::detail::Field<T>& field) {
        if (std::string_view(field.name) == "k" || field.of(params) == field.standard()) return;
        std::string flag = std::string(" --") + field.name;
        std::replace(flag.begin(), flag.end(), '_', '-');
        line += flag;
        if constexpr (!std::is_same_v<T, bool>) line += " " + gnnd::detail::text_of(field.of(params));
    });
    return line + " -o graph.gnnd";
}

/// The columns of the table that differ from setting to setting.
std::string setting_text(const gnnd::TuneRecord& record) {
    const gnnd::BuildParams& params = record.params;
    if (params.recall == 1) return formatted("%7s %5s %5s  %-10s", "-", "-", "-", "all pairs");
    const std::string trees = grows_trees(params.init) ? std::to_string(params.trees) : "-";
    return formatted("%7d %5d %5s  %-10s", params.samples, params.list_size, trees.c_str(),
                     std::string(name_of(params.init)).c_str());
}

std::string iterations_text(const gnnd::TuneRecord& record, const gnnd::TuneRun& run) {
    switch (run.stop) {
        case gnnd::StopReason::exact:
            return "-";
        case gnnd::StopReason::iterations:
            return std::to_string(run.iterations);
        case gnnd::StopReason::converged:
            return std::to_string(run.iterations) + " (converged)";
        case gnnd::StopReason::recall:
        case gnnd::StopReason::recall_missed:
        case gnnd::StopReason::searched:
            break;
    }
    return std::to_string(run.iterations) + " (to " + gnnd::detail::text_of(record.params.recall) +
           (run.stop == gnnd::StopReason::recall ? ")" : ", missed)");
}

std::string run_text(const gnnd::TuneRun& run) {
    return formatted("%9.4f  %.4f +- %.4f", run.seconds, run.recall.value, (run.recall.high - run.recall.low) / 2);
}

std::string line_of(const gnnd::TuneRecord& record, const gnnd::TuneRun& run) {
    return setting_text(record) + formatted("  %-16s", iterations_text(record, run).c_str()) + run_text(run);
}

/// Time against recall on one of the samples, by time.
void print_table(const gnnd::TuneResult& result, bool large) {
    std::vector<const gnnd::TuneRecord*> records;
    for (const gnnd::TuneRecord& record : result.records)
        if ((large ? record.large : record.small).rows != 0) records.push_back(&record);
    if (records.empty()) return;
    const auto run_of = [large](const gnnd::TuneRecord& record) { return large ? record.large : record.small; };
    std::stable_sort(records.begin(), records.end(),
                     [&](const auto* a, const auto* b) { return run_of(*a).seconds < run_of(*b).seconds; });
    const std::int64_t rows = large ? result.large_rows : result.small_rows;
    const bool predicted = large && rows < result.n && result.small_rows != 0;
    std::printf("\non %s rows%s\n", with_commas(rows).c_str(),
                predicted ? (", and predicted for " + with_commas(result.n)).c_str() : "");
    const std::string at = "Recall@" + std::to_string(run_of(*records[0]).recall.at);
    std::printf("  %7s %5s %5s  %-10s  %-16s%9s  %-16s%s\n", "samples", "lists", "trees", "init", "iterations",
                "seconds", at.c_str(), predicted ? "   seconds   recall" : "");
    for (const gnnd::TuneRecord* record : records) {
        const bool starred = record->front && (large || result.records[0].large.rows == 0);
        const std::string line = line_of(*record, run_of(*record));
        std::printf("%c %s", starred ? '*' : ' ', line.c_str());
        if (predicted) std::printf("%10.3f   %.4f", record->predicted_seconds, record->predicted_recall);
        std::printf("\n");
    }
}

Json json_of_run(const gnnd::TuneRun& run) {
    if (run.rows == 0) return nullptr;
    Json json{{"rows", run.rows}, {"seconds", run.seconds}};
    json.update(to_json(run.recall));
    json.update({{"iterations", run.iterations}, {"stop", name_of(run.stop)}, {"distances", run.distances}});
    return json;
}

/// Null for what was not measured or predicted.
Json unless_zero(double value) {
    return value != 0 ? Json(value) : Json(nullptr);
}

Json json_of_result(const TuneCommand& options, const gnnd::io::VectorFile& base, const gnnd::TuneResult& result) {
    Json records = Json::array();
    for (const gnnd::TuneRecord& record : result.records)
        records.push_back({{"params", to_json(record.params, {})},
                           {"small", json_of_run(record.small)},
                           {"large", json_of_run(record.large)},
                           {"predicted_seconds", unless_zero(record.predicted_seconds)},
                           {"predicted_recall", unless_zero(record.predicted_recall)},
                           {"front", record.front}});
    Json json{{"base", options.base},
              {"n", base.n()},
              {"d", base.d()},
              {"dtype", name_of(base.dtype())},
              {"params", to_json(options.params, {})},
              {"device", result.device.name()},
              {"threads", result.threads},
              {"small_rows", result.small_rows},
              {"large_rows", result.large_rows},
              {"time_exponent", unless_zero(result.time_exponent)},
              {"miss_exponent", result.time_exponent != 0 ? Json(result.miss_exponent) : Json(nullptr)},
              {"complete", result.complete},
              {"seconds", result.seconds},
              {"peak_memory_bytes", peak_memory()},
              {"records", records},
              {"chosen", nullptr},
              {"reaches", nullptr},
              {"command", nullptr}};
    if (result.chosen < 0) return json;
    json["chosen"] = result.chosen;
    json["reaches"] = result.reaches;
    json["command"] = command_line(options.base, result.params);
    return json;
}

std::string recall_asked(const TuneCommand& options, const gnnd::TuneResult& result) {
    return "Recall@" + std::to_string(result.records[0].run().recall.at) + " " +
           gnnd::detail::text_of(options.params.recall);
}

/// The reason why the command line is not all that was asked for; empty where it is.
std::string reservation(const TuneCommand& options, const gnnd::TuneResult& result) {
    if (result.chosen >= 0 && !result.reaches)
        return "none of the settings is expected to reach " + recall_asked(options, result) +
               " on all rows; the one with the most is named";
    if (!result.complete)
        return "--seconds ended it after " + std::to_string(result.records.size()) +
               " settings; the best until then is named";
    return "";
}

void print_choice(const TuneCommand& options, const gnnd::TuneResult& result) {
    if (result.chosen < 0) {
        std::printf("\nno recall was asked for, so that none of them is the best; * is the front\n");
        return;
    }
    const gnnd::TuneRecord& chosen = result.records[std::size_t(result.chosen)];
    const gnnd::TuneRun& run = chosen.run();
    std::printf("\nfor %s, * being the front:\n  %s\n", recall_asked(options, result).c_str(),
                command_line(options.base, result.params).c_str());
    std::printf("measured    %.4g s, %s, of %s rows\n", run.seconds, gnnd::to_text(run.recall).c_str(),
                with_commas(run.rows).c_str());
    if (run.rows == result.n) return;
    if (chosen.predicted_seconds == 0)
        std::printf("predicted   nothing: that takes two samples\n");
    else
        std::printf("predicted   about %.3g s for %s rows, where time grows as rows^%.2f, 1 - recall as rows^%.2f\n",
                    chosen.predicted_seconds, with_commas(result.n).c_str(), result.time_exponent,
                    result.miss_exponent);
}

void run(const TuneCommand& options) {
    validate(options.params);
    validate(options.how);
    require_outputs({options.stats}, {options.base});
    const gnnd::io::VectorFile base(options.base);
    const gnnd::TuneResult result = [&] {
        const StatusLine status(options.quiet);
        gnnd::TuneCallbacks callbacks;
        callbacks.interrupt = [] { return caught_signal() != 0; };
        callbacks.progress = [&](const gnnd::TuneRecord& record, const gnnd::TuneRun& run) {
            status.show(with_commas(run.rows) + " rows: " + line_of(record, run));
        };
        return with_row_names({&base}, [&] {
            return with_usage_errors([&] { return gnnd::tune(base.view(), options.params, options.how, callbacks); });
        });
    }();
    stop_if_interrupted();
    base.require_unchanged();
    warn(reservation(options, result));
    const Json json = json_of_result(options, base, result);
    if (!options.stats.empty()) write_json(options.stats, json);
    if (options.json) return print(json);
    print_base(base);
    std::printf("tried       %zu settings in %.1f s on %s, %d threads; true neighbours of %s objects\n",
                result.records.size(), result.seconds, result.device.name().c_str(), result.threads,
                with_commas(result.records[0].run().recall.objects).c_str());
    print_table(result, false);
    print_table(result, true);
    print_choice(options, result);
}

}  // namespace

void add_tune(CLI::App& app) {
    CLI::App& command =
        *app.add_subcommand("tune", "Find the parameters of `build` that reach a recall in the least time");
    const auto options = std::make_shared<TuneCommand>();
    gnnd::TuneParams& how = options->how;
    add_base(command, options->base);
    add_k(command, options->params.k, gnnd::kMaxK, "neighbours per object, at most " + std::to_string(gnnd::kMaxK));
    add_metric(command, options->params.metric);
    add_whole(command, "--rows", how.rows, 0, gnnd::kMaxObjects,
              "rows of BASE, drawn at random, on which the best settings are compared; a quarter of them serve to find "
              "these; 0: 40,000 on the CPU, 400,000 on a GPU");
    add_whole(command, "--objects", how.objects, 1, gnnd::kMaxObjects,
              "rows of a sample whose true neighbours the graphs are compared with");
    add_whole(command, "--settings", how.settings, 1, 10000, "most settings to try on the smaller sample");
    add_real(command, "--seconds", how.seconds, 0, 1e9, "end after this time with the best so far; 0: no limit");
    add_params(command, options->params);
    add_reporting(command, *options);
    command.footer(
        "--samples, --list-size, --trees, --init and --iterations are tried, but where they are given: those stay as\n"
        "they are (--iterations as a limit). All other options are those of the build. Time and recall of the samples\n"
        "are measured, those of all rows predicted; the build itself measures its recall, and ends where it is there.\n"
        "Example: gnnd tune base.fvecs -k 32 --recall 0.95");
    command.callback([options, &command] {
        options->params.threads = allowed_threads(options->params.threads);
        options->how.inits = command.get_option("--init")->count() == 0;
        run(*options);
    });
}

}  // namespace cli
