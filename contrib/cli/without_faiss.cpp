// SPDX-License-Identifier: MIT
// The tool without FAISS: what stands in for the files that need it.
#include <memory>

#include "baseline.h"
#include "commands.h"
#include "common.h"
#include "faiss_part.h"
#include "gnnd/error.h"
#include "values.h"

namespace cli {

namespace {

constexpr const char* kWithout = "this gnnd was built without FAISS";

/// Stays out of the help, and tells who calls it all the same.
void add_refusal(CLI::App& app, const std::string& name) {
    CLI::App& command = *app.add_subcommand(name, "Needs FAISS: " + std::string(kWithout))->group("");
    command.allow_extras();
    command.callback([name] { throw CLI::ValidationError(name, kWithout); });
}

}  // namespace

std::string faiss_version() {
    return "without FAISS";
}

std::string lack_of_faiss() {
    return "This gnnd was built without FAISS: there are no commands `index` and `search`, builds are gnnd's own, and\n"
           "so are the exact neighbours that `eval` compares with.\n";
}

std::string unknown_without_faiss() {
    return std::string("; ") + kWithout;
}

void interrupt_faiss() {}

std::optional<std::string> faiss_message(const std::exception& /*error*/) {
    return std::nullopt;
}

std::vector<std::string> truths() {
    return {"exhaustive"};
}

std::string about_truths() {
    return "exhaustive (gnnd's own comparison)";
}

ExactRows exact_by_faiss(const gnnd::Device& /*device*/, const gnnd::VectorView& /*vectors*/, gnnd::Metric /*metric*/,
                         const std::vector<std::int32_t>& /*objects*/, int /*k*/) {
    throw gnnd::Unavailable(kWithout);
}

void add_method(CLI::App& app, std::string& method) {
    add_one_of(app, "--method", method, "method", {"gnnd", "exhaustive"},
               "what builds it: gnnd, exhaustive (the comparison of all pairs)");
}

void add_method_options(CLI::App& /*app*/, MethodValues& /*values*/) {}

void require_method_options(const CLI::App& app, const std::string& method, const std::vector<std::string>& of_gnnd) {
    if (method == "gnnd") return;
    for (const std::string& flag : of_gnnd)
        if (app.get_option(flag)->count() > 0)
            throw CLI::ValidationError(flag, "has no meaning for --method " + method);
}

void build_baseline(const BaselineOptions& options) {
    build_exhaustively(options);
}

void add_exact(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("exact", "Build the exact k-NN graph by comparing all pairs");
    const auto options = std::make_shared<BaselineOptions>();
    add_base(command, options->base);
    add_k(command, options->k, gnnd::kMaxK, "neighbours per object, at most " + std::to_string(gnnd::kMaxK));
    add_output(command, options->graph, "graph file to write, .gnnd by convention");
    add_metric(command, options->metric);
    add_device(command, options->device);
    add_json(command, options->json);
    for (const char* flag : {"--queries", "--distances"})
        command
            .add_option_function<std::string>(
                flag, [flag](const std::string& /*file*/) { throw CLI::ValidationError(flag, kWithout); }, "")
            ->group("");
    command.footer(
        "The time grows with the square of the number of vectors. It is `gnnd build --method exhaustive`.\n"
        "The neighbours of other vectors (--queries) need FAISS, which this gnnd was built without.");
    command.callback([options] { build_exhaustively(*options); });
}

void add_index(CLI::App& app) {
    add_refusal(app, "index");
}

void add_search(CLI::App& app) {
    add_refusal(app, "search");
}

}  // namespace cli
