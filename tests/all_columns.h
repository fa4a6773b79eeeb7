// SPDX-License-Identifier: MIT
#pragma once
/// \file all_columns.h
/// The columns behind those that the recall counts, on either backend.

#include <gtest/gtest.h>

#include "gnnd/builder.h"
#include "tests/reference.h"

namespace gnnd::test {

/// In the plane lists hold their ten nearest long before the others.
/// \param params  of a build that iterates
inline void expect_all_columns(BuildParams params) {
    const Vectors vectors = random_vectors(20000, 2, DType::f32);
    params.k = 64;
    const BuildResult result = build(vectors, params);
    EXPECT_EQ(result.stats.stop, StopReason::recall);
    const RecallEstimate& all = result.stats.recall_all;
    EXPECT_EQ(all.at, 64);
    EXPECT_GE(all.objects, 128);
    EXPECT_GE(all.value, 0.9 * double(params.recall));
    EXPECT_NEAR(all.value, Truth(vectors, Metric::L2, 64).recall_of(result.graph), 0.03);

    params.recall_at = 64;
    EXPECT_EQ(build(vectors, params).stats.recall_all.objects, 0);  // they count
    params.recall_at = 0;
    params.recall = 0;
    EXPECT_EQ(build(vectors, params).stats.recall_all.objects, 0);
    params.recall = 1;
    EXPECT_EQ(build(vectors, params).stats.recall_all.objects, 0);  // the graph is exact
}

}  // namespace gnnd::test
