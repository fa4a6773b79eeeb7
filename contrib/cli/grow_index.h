// SPDX-License-Identifier: MIT
#pragma once
/// `gnnd index` with --factory and --append: indexes whose add() builds and grows their graphs.

#include <string>

#include "gnnd/device.h"
#include "gnnd/metric.h"

namespace cli {

struct GrowOptions {
    std::string base;            ///< vectors to add
    std::string factory, older;  ///< a description, or the file of the index that they are added to
    std::string output;
    gnnd::Metric metric = gnnd::Metric::L2;  ///< with a description
    float recall = 0.99f;                    ///< of the graph
    gnnd::Device device;
    bool json = false;
};

/// Makes the index of a description, or reads the older one, adds the vectors, writes it and reports.
void grow_index(const GrowOptions& options);

}  // namespace cli
