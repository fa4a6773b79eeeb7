// SPDX-License-Identifier: MIT
#pragma once
/// \file scales.h
/// Vectors at both ends of what float32 holds: a graph is as good there as anywhere, as far as distances tell
/// neighbours apart.

#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"
#include "tests/cpu.h"
#include "tests/io_conditions.h"
#include "tests/merge_cases.h"
#include "tests/reference.h"

namespace gnnd::test {

/// Random vectors times a factor, and the least recall that their graphs are to have.
struct Scaled {
    static constexpr std::int64_t kRows = 3000, kDim = 64;

    Scaled(float factor, const BuildParams& params)
        : plain(random_vectors(kRows, kDim, DType::f32)),
          vectors(scaled(plain, factor)),
          truth(vectors, params.metric) {
        // Distances that are subnormal have few digits: even the exact graph misses neighbours by ties.
        const double exact = truth.recall_of(build_exact(vectors, cpu_params(params.k, params.metric)).graph);
        const double usual = Truth(plain, params.metric).recall_of(build(plain, params).graph);
        least_exact = exact - 0.002;
        least = exact + usual - 1 - 0.02;
    }
    void expect_good(const KnnGraph& graph, double recall) const {
        ASSERT_NO_FATAL_FAILURE(expect_valid_graph(graph, vectors));
        EXPECT_GE(truth.recall_of(graph), recall);
    }

    Vectors plain, vectors;
    Truth truth;
    double least_exact, least;
};

/// Squares of 1e-22 and of 1e-20 are subnormal, those of 1e-22 with few digits, and what brings the components to the
/// middle of float16 has a square that float32 does not hold. Norms of 9.2e18 are the largest that are taken.
template <class F>
void at_scales(const BuildParams& params, F&& expect) {
    for (const float factor : {1e-22f, 1e-20f, 4e17f})
        for (const Metric metric : {Metric::L2, Metric::InnerProduct, Metric::L1, Metric::Linf}) {
            SCOPED_TRACE(testing::Message() << factor << ' ' << name_of(metric));
            BuildParams of_metric = params;
            of_metric.metric = metric;
            expect(Scaled(factor, of_metric), of_metric);
        }
}

inline void expect_good_builds_at_scales(const BuildParams& params) {
    at_scales(params, [](const Scaled& set, const BuildParams& params) {
        const BuildResult built = build(set.vectors, params);
        set.expect_good(built.graph, set.least);
        set.expect_good(refine(set.vectors, built.graph, params).graph, set.least);
        set.expect_good(build_exact(set.vectors, params).graph, set.least_exact);
    });
}

inline void expect_good_merges_at_scales(const BuildParams& params) {
    at_scales(params, [](const Scaled& set, const BuildParams& params) {
        set.expect_good(Halves(set.vectors, 1300, params).merge(params).graph, set.least);
    });
}

/// Rows whose distances might overflow are refused, under any metric; those just below have finite ones.
inline void expect_large_rows_are_named(BuildParams params) {
    Vectors vectors = random_vectors(3000, 8, DType::f32, true);
    for (const float component : {3e18f, 3.5e18f})  // squared norms of 7.2e37 and 9.8e37
        for (const Metric metric : kMetrics) {
            SCOPED_TRACE(testing::Message() << component << ' ' << name_of(metric));
            for (int c = 0; c < 8; ++c) vectors.set(77, c, component);
            params.metric = metric;
            if (component < 3.2e18f)
                expect_valid_graph(build(vectors, params).graph, vectors);
            else
                EXPECT_EQ(message_of<InvalidArgument>([&] { build(vectors, params); }),
                          "vector 77 is too large: its squared norm must stay below 8.5e37");
        }
}

}  // namespace gnnd::test
