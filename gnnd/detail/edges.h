// SPDX-License-Identifier: MIT
#pragma once
/// \file edges.h
/// The entries of a k-NN graph that an operation of operations.h counts, for both backends: the checks, and the texts
/// about what is wrong.

#include <cmath>
#include <cstdint>
#include <limits>

#include "gnnd/graph.h"
#include "gnnd/operations.h"

namespace gnnd::detail {

/// The first columns of a graph with a value for each entry. Those outside of [low, high] do not count.
struct Edges {
    std::int64_t n = 0, k = 0;  ///< k: from a row to the next one
    std::int64_t columns = 0;   ///< that are looked at, up to k
    const std::int32_t* ids = nullptr;
    const float* values = nullptr;
    float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
    bool larger_is_nearer = false;

    GNND_HOST_DEVICE const std::int32_t* ids_of(std::int64_t i) const { return ids + i * k; }
    GNND_HOST_DEVICE const float* values_of(std::int64_t i) const { return values + i * k; }
    GNND_HOST_DEVICE bool counts(std::int32_t id, float value) const {
        return id >= 0 && value >= low && value <= high;
    }
    /// Entries of the row before the padding.
    GNND_HOST_DEVICE int length_of(std::int64_t i) const {
        std::int64_t length = columns;
        while (length > 0 && ids_of(i)[length - 1] < 0) --length;
        return int(length);
    }
};

/// All entries of the first columns with the graph's own values; its rows were not looked at.
/// \throws InvalidArgument for a shape, a metric or pointers that no graph has
Edges edges_of_shape(const char* who, const KnnGraphView& graph, int neighbors);

/// \throws InvalidArgument for values and a radius that are none
void check_cut(const char* who, const EdgeParams& params);
/// The same for the other parameters.
void check_params(const JaccardParams& params);
void check_params(const FuzzyParams& params, const Edges& edges);
void check_params(const ReachabilityParams& params, const Edges& edges);
void check_threshold(const DuplicateParams& params);

/// The least weight that is kept: pairs that share nobody go.
float least_weight(const JaccardParams& params);
/// The sum of the weights of a row.
double weight_of_row(const FuzzyParams& params, std::int64_t columns);

/// Says what is wrong with row i, a bad one. \param ids, values  the row's
[[noreturn]] void refuse_row(const char* who, const Edges& edges, std::int64_t i, const std::int32_t* ids,
                             const float* values);
[[noreturn]] void refuse_double(std::int64_t i);

/// bfloat16 vectors of length 1 have inner products of up to 1.004 with themselves.
inline constexpr float kLargestCosine = 1.01F;

/// True for what is no value that a true distance comes from. \tparam M  of `metrics`
template <class M>
GNND_HOST_DEVICE bool has_no_distance(float value) {
    return M::similarity ? !(value <= kLargestCosine) : !(value >= 0);
}

/// Says that the value, number `index` of rows of k, is such a one. \param k  0: there are no rows
[[noreturn]] void refuse_value(const char* who, Metric metric, float value, std::int64_t index, std::int64_t k);

/// True where the cut lets a pair of equal vectors through. Under ip their value depends on their length; they are
/// copies all the same.
inline bool equal_rows_count(const Edges& edges, Metric metric) {
    return edges.counts(0, edges.larger_is_nearer ? best_value(metric) : 0);
}

}  // namespace gnnd::detail
