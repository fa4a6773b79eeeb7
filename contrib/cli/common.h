// SPDX-License-Identifier: MIT
#pragma once
/// Several subcommands need this: options that look alike everywhere, and printing.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "gnnd/metric.h"
#include "gnnd/params.h"
#include "values.h"

namespace cli {

using Json = nlohmann::ordered_json;

CLI::Option* add_base(CLI::App& app, std::string& path, const std::string& name = "BASE");
CLI::Option* add_graph(CLI::App& app, std::string& path, const std::string& name = "GRAPH");
/// A file or folder that is told by its extension.
CLI::Option* add_vectors_or_graph(CLI::App& app, std::string& path, const std::string& name);
/// -k and --k mean the same, in every subcommand. \param most  the largest that is allowed
CLI::Option* add_k(CLI::App& app, int& k, int most, const std::string& help);
CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help);
CLI::Option* add_metric(CLI::App& app, gnnd::Metric& metric);
CLI::Option* add_output(CLI::App& app, std::string& path, const std::string& help);
CLI::Option* add_json(CLI::App& app, bool& json);
CLI::Option* add_device(CLI::App& app, gnnd::Device& device);

/// The most memory this process had in use so far, in bytes; 0 where the system does not tell.
std::int64_t peak_memory();

/// "12.3 MiB"
std::string human_bytes(std::int64_t bytes);

std::string to_text(const Json& json);
void print(const Json& json);
/// Replaces the file in one step.
void write_json(const std::string& path, const Json& json);

}  // namespace cli
