// SPDX-License-Identifier: MIT
#pragma once
/// --method: the graph builders that GNND is compared with, and their options. without_faiss.cpp has those that there
/// are without FAISS.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gnnd/params.h"

namespace cli {

/// Values of the methods' options, by their names.
using MethodValues = std::map<std::string, std::int64_t>;

/// --method.
void add_method(CLI::App& app, std::string& method);
/// The options of the methods; `values` then holds the defaults, and has to outlive the application.
void add_method_options(CLI::App& app, MethodValues& values);
/// Refuses options of methods that were not chosen.
/// \param of_gnnd  options that only GNND itself has, but for those that a method's list names
/// \throws CLI::ValidationError
void require_method_options(const CLI::App& app, const std::string& method, const std::vector<std::string>& of_gnnd);

struct BaselineOptions {
    std::string method = "exact", base, graph, stats;
    int k = gnnd::BuildParams{}.k;
    gnnd::Metric metric = gnnd::BuildParams{}.metric;
    gnnd::Device device;
    MethodValues values;  ///< of any methods' options
    bool json = false;
};

/// Builds the graph by a method that is not gnnd's own, writes it and reports.
void build_baseline(const BaselineOptions& options);

/// The same by gnnd's own comparison of all pairs.
void build_exhaustively(const BaselineOptions& options);

}  // namespace cli
