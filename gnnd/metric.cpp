// SPDX-License-Identifier: MIT
#include "gnnd/metric.h"

#include <string>

#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr auto kMetricNames = [] {
    NameTable<Metric, kMetrics.size()> table{"metric", {}};
    for (std::size_t i = 0; i < kMetrics.size(); ++i)
        table.entries[i] = {kMetrics[i], visit(kMetrics[i], [](auto m) { return m.name; })};
    return table;
}();

}  // namespace

std::string_view name_of(Metric metric) {
    return kMetricNames.name_of(metric);
}

void throw_unknown(Metric metric) {
    throw InvalidArgument("unknown metric number " + std::to_string(std::uint32_t(metric)));
}

Metric parse_metric(std::string_view name) {
    return kMetricNames.parse(name);
}

}  // namespace gnnd
