// SPDX-License-Identifier: MIT
#pragma once
/// build --shards: graphs of more vectors than fit into memory.

#include "common.h"
#include "gnnd/sharded.h"

namespace cli {

struct ShardedOptions {
    std::string base, stats;
    gnnd::BuildParams params;
    gnnd::ShardParams shards;
    bool json = false, quiet = false;
};

/// --shards and what belongs to it.
void add_sharded(CLI::App& app, gnnd::ShardParams& shards);

/// Builds or goes on with the graph and reports. \param params_json  the parameters as --json prints them
void build_in_shards(const ShardedOptions& options, const Json& params_json);

/// Prints the time, the memory and the disk that the build would take.
void print_sharded_plan(const ShardedOptions& options);

}  // namespace cli
