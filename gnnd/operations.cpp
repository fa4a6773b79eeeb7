// SPDX-License-Identifier: MIT
#include "gnnd/operations.h"

#include "gnnd/cpu/operations/edges.h"
#include "gnnd/names.h"

namespace gnnd {
namespace {

constexpr NameTable<GraphValues, 2> kGraphValues{
    "values", {{{GraphValues::metric, "metric"}, {GraphValues::distance, "distance"}}}};

}  // namespace

std::string_view name_of(GraphValues values) {
    return kGraphValues.name_of(values);
}

GraphValues parse_graph_values(std::string_view name) {
    return kGraphValues.parse(name);
}

void true_distances(Metric metric, const float* values, std::int64_t count, float* out, int threads) {
    cpu::convert_to_distances("true_distances", metric, values, count, 0, out, cpu::team_of(threads, nullptr));
}

}  // namespace gnnd
