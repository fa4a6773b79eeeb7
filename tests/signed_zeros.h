// SPDX-License-Identifier: MIT
#pragma once
/// \file signed_zeros.h
/// Vectors whose zeros have signs, as roundings and negations leave them: neighbours and values are those of vectors
/// without, on both backends.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/merge.h"
#include "tests/invariants.h"
#include "tests/merge_cases.h"

namespace gnnd::test {

/// Two components by which a dozen vectors each are equal, then zeros, every other of which is `negative`.
inline Vectors vectors_of_zeros(std::int64_t n, DType dtype, float negative) {
    constexpr std::int64_t kWidth = 7;
    Vectors vectors(n, kWidth, dtype);
    std::mt19937 random(3);
    for (std::int64_t i = 0; i < n; ++i) {
        vectors.set(i, 0, float(1 + random() % 100));
        vectors.set(i, 1, float(random() % 3));
        for (std::int64_t c = 2; c < kWidth; ++c) vectors.set(i, c, random() % 2 == 0 ? 0 : negative);
    }
    return vectors;
}

inline void expect_no_signs(const KnnGraphView& graph, const VectorView& vectors, const char* what) {
    SCOPED_TRACE(what);
    expect_valid_graph(graph, vectors);
    for (std::int64_t i = 0; i < graph.n; ++i)
        for (std::int64_t j = 0; j < graph.k; ++j) {
            const float value = graph.distances_of(i)[j];
            ASSERT_FALSE(value == 0 && std::signbit(value)) << "row " << i << ", column " << j;
        }
}

inline void expect_signs_of_zeros_do_not_count(DType dtype, const BuildParams& params) {
    constexpr std::int64_t kAll = 3600, kFirst = 2000, kAdded = 100;
    const Vectors vectors = vectors_of_zeros(kAll, dtype, -0.0F), plain = vectors_of_zeros(kAll, dtype, 0);
    const KnnGraph exact = build_exact(vectors, params).graph;
    expect_no_signs(exact, vectors, "all pairs");
    const KnnGraph without = build_exact(plain, params).graph;
    if (params.device.kind == Device::Kind::cpu) {
        EXPECT_TRUE(same_graph(exact, without));
    }
    // Of those that are equally far a GPU keeps any.
    for (std::int64_t e = 0; e < kAll * params.k; ++e)
        ASSERT_EQ(exact.distances()[e], without.distances()[e]) << "row " << e / params.k;
    expect_no_signs(build(vectors, params).graph, vectors, "build");

    const VectorView first = rows_of(vectors, 0, kFirst), second = rows_of(vectors, kFirst, kAll - kFirst);
    const KnnGraph of_first = build_exact(first, params).graph;
    const auto appended = [&](const KnnGraph& graph) {
        const VectorView added = rows_of(vectors, kFirst, kAdded);
        return append(first, graph, added, params, {}, nullptr, AppendMethod::search).graph;
    };
    const VectorView with_added = rows_of(vectors, 0, kFirst + kAdded);
    expect_no_signs(appended(of_first), with_added, "append");

    // Graphs may bring such distances, as other programs write them; rows that an append leaves alone keep them.
    KnnGraph negative = of_first;
    for (std::int64_t e = 0; e < kFirst * params.k; ++e)
        if (float& value = negative.distances()[e]; value == 0) value = -0.0F;
    expect_valid_graph(appended(negative), with_added);
    expect_no_signs(refine(first, negative, params).graph, first, "refine");
    const KnnGraph of_second = build_exact(second, params).graph;
    expect_no_signs(merge(first, negative, second, of_second, params).graph, vectors, "merge");

    std::vector<std::int32_t> queries(600);
    std::iota(queries.begin(), queries.end(), 7);
    EXPECT_TRUE(same_graph(exact_neighbors(vectors, queries.data(), 600, params),
                           exact_neighbors(plain, queries.data(), 600, params)));
}

}  // namespace gnnd::test
