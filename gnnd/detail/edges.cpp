// SPDX-License-Identifier: MIT
#include "gnnd/detail/edges.h"

#include <algorithm>
#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/numbers.h"
#include "gnnd/error.h"

namespace gnnd::detail {
namespace {

constexpr float kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();

}  // namespace

Edges edges_of_shape(const char* who, const KnnGraphView& graph, int neighbors) {
    const std::string call(who);
    Edges edges;
    edges.larger_is_nearer = is_similarity(graph.metric);  // throws for a number that is no metric
    edges.n = graph.n;
    edges.k = graph.k;
    edges.columns = neighbors > 0 ? neighbors : graph.k;
    edges.ids = graph.ids;
    edges.values = graph.distances;
    if (graph.n < 0 || graph.n > kMaxObjects)
        throw InvalidArgument(call + ": the graph has " + std::to_string(graph.n) + " rows, allowed are 0 to " +
                              std::to_string(kMaxObjects));
    if (graph.n == 0) return edges;  // of no columns, perhaps
    if (graph.k < 1 || graph.k > kMaxColumns)
        throw InvalidArgument(call + ": the graph has " + std::to_string(graph.k) + " columns, allowed are 1 to " +
                              std::to_string(kMaxColumns));
    if (neighbors < 0 || neighbors > graph.k)
        throw InvalidArgument(call + ": neighbors = " + std::to_string(neighbors) + ", allowed are 1 to the graph's " +
                              std::to_string(graph.k) + ", and 0 for all of them");
    if (graph.ids == nullptr || graph.distances == nullptr)
        throw InvalidArgument(call + ": the graph's arrays are null pointers");
    return edges;
}

void check_cut(const char* who, const EdgeParams& params) {
    name_of(params.values);  // throws for a number that is none
    if (params.radius && std::isnan(*params.radius))
        throw InvalidArgument(std::string(who) + ": EdgeParams::radius is NaN");
}

void check_params(const JaccardParams& params) {
    check_range("JaccardParams", "prune", params.prune, 0.f, 1.f);
}

void check_params(const FuzzyParams& params, const Edges& edges) {
    const auto columns = float(edges.n == 0 ? kMaxColumns : edges.columns);
    check_range("FuzzyParams", "local_connectivity", params.local_connectivity, 0.f, columns);
    check_range("FuzzyParams", "set_op_mix_ratio", params.set_op_mix_ratio, 0.f, 1.f);
    check_range("FuzzyParams", "bandwidth", params.bandwidth, kLeast, kMost);
}

void check_params(const ReachabilityParams& params, const Edges& edges) {
    check_range("ReachabilityParams", "alpha", params.alpha, kLeast, kMost);
    check_range("ReachabilityParams", "min_samples", std::int64_t(params.min_samples), std::int64_t(1),
                edges.n == 0 ? kMaxColumns : edges.columns);
}

void check_threshold(const DuplicateParams& params) {
    if (std::isnan(params.threshold)) throw InvalidArgument("duplicates: DuplicateParams::threshold is NaN");
}

float least_weight(const JaccardParams& params) {
    return std::max(params.prune, std::numeric_limits<float>::denorm_min());
}

double weight_of_row(const FuzzyParams& params, std::int64_t columns) {
    return std::log2(double(columns) + 1) * params.bandwidth;
}

namespace {

/// Says what is wrong with the entry; the row before it is good.
std::string fault_of_entry(const Edges& edges, std::int64_t i, const std::int32_t* ids, const float* values,
                           std::int64_t j) {
    if (ids[j] < -1 || ids[j] >= edges.n)
        return "id " + std::to_string(ids[j]) + " is outside of [0, " + std::to_string(edges.n) + ")";
    if (ids[j] == i) return "holds itself";
    if (j > 0 && ids[j] >= 0 && ids[j - 1] < 0) return "-1 before id " + std::to_string(ids[j]);
    if (std::isnan(values[j])) return "the value of entry " + std::to_string(j) + " is NaN";
    return "entry " + std::to_string(j) + " is nearer than the one before it";
}

}  // namespace

void refuse_row(const char* who, const Edges& edges, std::int64_t i, const std::int32_t* ids, const float* values) {
    const float sign = edges.larger_is_nearer ? -1.f : 1.f;
    std::int64_t j = 0;
    for (; j + 1 < edges.columns; ++j) {
        const bool good = ids[j] >= -1 && ids[j] < edges.n && ids[j] != i && !std::isnan(values[j]) &&
                          (j == 0 || (!(ids[j - 1] < 0 && ids[j] >= 0) && sign * values[j - 1] <= sign * values[j]));
        if (!good) break;
    }
    throw InvalidArgument(std::string(who) + ": graph row " + std::to_string(i) + ": " +
                          fault_of_entry(edges, i, ids, values, j));
}

void refuse_double(std::int64_t i) {
    throw InvalidArgument("graph row " + std::to_string(i) + " holds an id twice");
}

void refuse_value(const char* who, Metric metric, float value, std::int64_t index, std::int64_t k) {
    const std::string where = k > 0 ? "graph row " + std::to_string(index / k) + ", entry " + std::to_string(index % k)
                                    : "value " + std::to_string(index);
    throw InvalidArgument(std::string(who) + ": " + where + ": " + number_text(value) +
                          (is_similarity(metric) && value > kLargestCosine
                               ? " is no similarity of vectors of length 1, for others there is no distance"
                               : " is no value of " + std::string(name_of(metric))));
}

}  // namespace gnnd::detail
