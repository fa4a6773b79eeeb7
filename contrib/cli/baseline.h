// SPDX-License-Identifier: MIT
#pragma once
/// The graph builders that GNND is compared with.

#include <string>

#include "faiss_ext/graph_builder.h"

namespace cli {

struct BaselineOptions {
    std::string method = "exact", base, graph, stats;
    int k = gnnd::BuildParams{}.k;
    gnnd::Metric metric = gnnd::BuildParams{}.metric;
    gnnd::Device device;
    faiss_ext::OptionValues values;  ///< of the method's options
    bool json = false;
};

/// Builds the graph, writes it and reports.
void build_baseline(const BaselineOptions& options);

}  // namespace cli
