// SPDX-License-Identifier: MIT
#pragma once
/// The commands that run GNND share this: its options, progress while it runs, the graph they write and their report.

#include <functional>
#include <string>
#include <vector>

#include "common.h"
#include "gnnd/builder.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/vector_file.h"
#include "messages.h"

namespace cli {

struct BuildOptions {
    std::string graph, stats;  ///< files to write
    gnnd::BuildParams params;
    bool json = false, quiet = false;
};

/// Adds the options of BuildParams, but for k and metric, which are the command's own.
void add_params(CLI::App& app, gnnd::BuildParams& params);
/// --stats, --json and --quiet.
void add_reporting(CLI::App& app, BuildOptions& options);

/// Calls f. Parameters that are out of range are wrong usage.
template <class F>
decltype(auto) with_usage_errors(F&& f) {
    try {
        return f();
    } catch (const gnnd::InvalidArgument& error) {
        const std::string message = parameter_message(error.what());
        if (message.empty()) throw;
        throw CLI::ValidationError(message);
    }
}

template <class Params>
void validate(const Params& params) {
    with_usage_errors([&] { params.validate(); });
}

/// `samples` as used, which the parameters may leave open.
Json to_json(const gnnd::BuildParams& params, const gnnd::Choices& choices);

/// "recall", its interval and on what it was measured; empty where it was not.
Json to_json(const gnnd::RecallEstimate& recall);
/// Null where nothing is predicted.
Json to_json(const gnnd::Prediction& predicted);

/// A sentence about what a graph lacks of the recall that was asked for; empty where nothing is missing.
std::string shortfall(const gnnd::BuildParams& params, gnnd::StopReason stop, const gnnd::RecallEstimate& recall);
/// What it is well to know of a graph: shortfall() and gnnd::unresolved_warning(), or empty.
std::string warning_of(const gnnd::BuildParams& params, const gnnd::BuildStats& stats);
/// Those that are not empty.
std::string joined(const std::vector<std::string>& warnings);
/// On standard error, unless it is empty.
void warn(const std::string& warning);

/// Calls `run` with callbacks that show progress and end it when a signal comes.
/// \param bases  whose vectors, one after the other, are the objects of the graph; errors in a vector name its file
gnnd::BuildResult run_with_progress(const BuildOptions& options, const std::vector<const gnnd::io::VectorFile*>& bases,
                                    const std::function<gnnd::BuildResult(const gnnd::Callbacks&)>& run);

/// One line about a file of vectors.
void print_base(const gnnd::io::VectorFile& base);

/// Writes the graph and the statistics and prints the report.
/// \param base         what the graph is of
/// \param files        the same
/// \param about        what of the report the command itself knows, first
/// \param print_about  the same as lines
void finish(const BuildOptions& options, const gnnd::BuildResult& result, const gnnd::io::BaseIdentity& base,
            const std::vector<const gnnd::io::VectorFile*>& files, Json about,
            const std::function<void()>& print_about);

}  // namespace cli
