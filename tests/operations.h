// SPDX-License-Identifier: MIT
#pragma once
/// \file operations.h
/// Operations on graphs as they are written down, and graphs to try them on.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/operations.h"
#include "tests/hard_sets.h"
#include "tests/links.h"

namespace gnnd::test {

/// The name of a test's metric, for suites that run with each.
inline std::string metric_name(const testing::TestParamInfo<Metric>& info) {
    return std::string(name_of(info.param));
}

/// Rows of a sparse matrix.
using Sparse = std::vector<std::map<std::int32_t, float>>;

inline Sparse sparse_of(const CsrGraph& graph) {
    Sparse rows(std::size_t(graph.n));
    for (std::int64_t i = 0; i < graph.n; ++i)
        for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
            rows[i][graph.indices[e]] = graph.values[e];
    return rows;
}

/// In every result offsets ascend and columns ascend within a row, none of them outside, none the row's own.
inline void expect_valid(const CsrGraph& graph, std::int64_t n) {
    ASSERT_EQ(graph.n, n);
    ASSERT_EQ(std::int64_t(graph.indptr.size()), n + 1);
    ASSERT_EQ(graph.indptr[0], 0);
    ASSERT_EQ(std::int64_t(graph.indices.size()), graph.entries());
    ASSERT_EQ(std::int64_t(graph.values.size()), graph.entries());
    for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_LE(graph.indptr[i], graph.indptr[i + 1]) << i;
        for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
            ASSERT_GE(graph.indices[e], 0) << i;
            ASSERT_LT(graph.indices[e], n) << i;
            ASSERT_NE(graph.indices[e], i);
            if (e > graph.indptr[i]) {
                ASSERT_LT(graph.indices[e - 1], graph.indices[e]) << i;
            }
        }
    }
}

inline bool same(const CsrGraph& a, const CsrGraph& b) {
    return a.n == b.n && a.indptr == b.indptr && a.indices == b.indices && a.values == b.values;
}

inline float naive_distance(Metric metric, float value) {
    if (metric == Metric::L2) return std::sqrt(value);
    return is_similarity(metric) ? std::max(0.f, 1 - value) : value;
}

inline Sparse naive_neighbors(const KnnGraphView& graph, const EdgeParams& params) {
    const bool distances = params.values == GraphValues::distance;
    const bool larger = is_similarity(graph.metric) && !distances;
    Sparse rows(std::size_t(graph.n));
    for (std::int64_t i = 0; i < graph.n; ++i)
        for (std::int64_t j = 0; j < (params.neighbors > 0 ? params.neighbors : graph.k); ++j) {
            if (graph.ids_of(i)[j] < 0) continue;
            float value = graph.distances_of(i)[j];
            if (distances) value = naive_distance(graph.metric, value);
            if (!params.radius || (larger ? value >= *params.radius : value <= *params.radius))
                rows[i][graph.ids_of(i)[j]] = value;
        }
    return rows;
}

/// Of every pair that one or both directions hold: `rule` gets both values, NaN for one that is not there, and gives
/// NaN for what is left out.
inline Sparse naive_join(const Sparse& rows, const std::function<float(float, float)>& rule) {
    Sparse joined(rows.size());
    const auto value = [&](std::size_t i, std::int32_t j) {
        const auto at = rows[i].find(j);
        return at == rows[i].end() ? NAN : at->second;
    };
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (const auto& [j, here] : rows[i])
            if (const float x = rule(here, value(std::size_t(j), std::int32_t(i))); !std::isnan(x))
                joined[i][j] = joined[std::size_t(j)][std::int32_t(i)] = x;
    return joined;
}

/// The exact graph of vectors that the metric is defined for.
inline KnnGraph graph_for(Metric metric, std::int64_t n, int k, std::int64_t d = 12) {
    return exact_graph(vectors_for(metric, n, d, DType::f32), metric, k);
}

/// Of vectors of length 1 for the inner product, so that distances are defined.
inline KnnGraph graph_with_distances(Metric metric, std::int64_t n, int k, std::int64_t d = 12) {
    if (metric != Metric::InnerProduct) return graph_for(metric, n, k, d);
    KnnGraph graph = graph_for(Metric::Cosine, n, k, d);
    KnnGraph relabelled(n, k, metric);
    std::copy_n(graph.ids(), n * k, relabelled.ids());
    std::copy_n(graph.distances(), n * k, relabelled.distances());
    return relabelled;
}

/// A graph that nobody built: random ids without repetition, random values; some rows end early.
inline KnnGraph random_graph(Metric metric, std::int64_t n, int k, unsigned seed, bool padded) {
    std::mt19937 random(seed);
    KnnGraph graph(n, k, metric);
    const float sign = is_similarity(metric) ? -1 : 1;
    for (std::int64_t i = 0; i < n; ++i) {
        std::vector<std::int32_t> ids;
        std::vector<float> values;
        const std::int64_t most = std::min<std::int64_t>(k, n - 1);
        const std::int64_t count = padded ? std::int64_t(random() % unsigned(most + 1)) : most;
        while (std::ssize(ids) < count) {
            // Low ids are in many rows: hubs.
            const std::int64_t range = random() % 2 == 0 ? std::min<std::int64_t>(n, 2 * k) : n;
            const auto id = std::int32_t(random() % unsigned(range));
            if (id == i || std::find(ids.begin(), ids.end(), id) != ids.end()) continue;
            ids.push_back(id);
            values.push_back(sign * float(random() % 8) / 4);
        }
        std::sort(values.begin(), values.end(), [&](float a, float b) { return sign * a < sign * b; });
        std::copy(ids.begin(), ids.end(), graph.ids() + i * k);
        std::copy(values.begin(), values.end(), graph.distances() + i * k);
    }
    return graph;
}

}  // namespace gnnd::test
