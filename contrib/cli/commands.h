// SPDX-License-Identifier: MIT
#pragma once
/// The subcommands of gnnd, one per file, or those that do alike. Each function adds one to the application: its
/// options, its help and what it does.

#include <CLI/CLI.hpp>

namespace cli {

void add_build(CLI::App& app);
void add_eval(CLI::App& app);
void add_exact(CLI::App& app);
void add_info(CLI::App& app);
void add_convert(CLI::App& app);
void add_graph_operations(CLI::App& app);
void add_index(CLI::App& app);
void add_merge(CLI::App& app);
void add_append(CLI::App& app);
void add_refine(CLI::App& app);
void add_search(CLI::App& app);
void add_tune(CLI::App& app);
/// The man page and the completion of a shell's command line, of all commands added before.
void add_manual(CLI::App& app);

}  // namespace cli
