// SPDX-License-Identifier: MIT
// refine() on a GPU. Without one all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "gnnd/builder.h"
#include "tests/gpu.h"
#include "tests/invariants.h"

namespace gnnd {
namespace {

using test::expect_valid_graph;
using test::gpu_params;
using test::random_vectors;
using test::Vectors;

TEST(CudaRefine, StartsFromTheGraph) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(3000, 20, DType::f32);
    BuildParams params = gpu_params(10);
    params.recall = 0;  // else all pairs of so few are compared, without an iteration
    const BuildResult built = build(vectors, params);
    const BuildResult refined = refine(vectors, built.graph, params);
    expect_valid_graph(refined.graph, vectors);
    ASSERT_FALSE(built.stats.iterations.empty());
    EXPECT_NEAR(refined.stats.iterations.front().phi / built.stats.iterations.back().phi, 1, 1e-3);
    EXPECT_LE(refined.stats.iterations.back().phi, built.stats.iterations.back().phi * (1 + 1e-6));
    params.k = 50;
    expect_valid_graph(refine(vectors, built.graph, params).graph, vectors);
}

/// A good graph is only measured, and one that has fewer columns than are wanted is good in its first ones alone.
TEST(CudaRefine, MeasuresBeforeItIterates) {
    SKIP_WITHOUT_GPU();
    const Vectors vectors = random_vectors(20000, 16, DType::f32);
    BuildParams params = gpu_params(10);
    const KnnGraph exact = build_exact(vectors, params).graph;
    const BuildResult refined = refine(vectors, exact, params);
    EXPECT_EQ(refined.stats.stop, StopReason::recall);
    EXPECT_EQ(refined.stats.iterations.size(), 1u);
    EXPECT_GE(refined.stats.recall.value, 0.99);
    EXPECT_GT(refined.stats.recall_seconds, 0);
    EXPECT_TRUE(test::same_graph(refined.graph, exact));
    params.k = 40;
    const BuildResult wide = refine(vectors, exact, params);
    EXPECT_GT(wide.stats.iterations.size(), 1u);
    EXPECT_GE(test::Truth(vectors, Metric::L2, 40).recall_of(wide.graph), 0.95);
    params.k = 10;
    params.recall = 0;
    EXPECT_GT(refine(vectors, exact, params).stats.iterations.size(), 1u) << "nothing is measured";
}

/// Neighbours to start from give way to nearer ones, also where vectors are long beside their distances: in clusters
/// far from each other, where a small part of the vectors' norms is as much as two neighbours' distance.
TEST(CudaRefine, ReplacesWhatItStartsFrom) {
    SKIP_WITHOUT_GPU();
    constexpr int kClusters = 60, kSize = 100, kN = kClusters * kSize, kD = 16, kK = 32;
    std::mt19937 random(11);
    std::uniform_real_distribution<float> anywhere(-1, 1);
    std::normal_distribution<float> near(0, 0.0064f);
    Vectors vectors(kN, kD, DType::f32);
    for (int cluster = 0; cluster < kClusters; ++cluster)
        for (int c = 0; c < kD; ++c) {
            const float centre = anywhere(random);
            for (int i = 0; i < kSize; ++i) vectors.set(cluster * kSize + i, c, centre + near(random));
        }
    KnnGraph start(kN, kK, Metric::L2);
    for (int i = 0; i < kN; ++i)  // any others of the cluster
        for (int j = 0; j < kK; ++j) {
            const int cluster = i / kSize * kSize;
            start.ids()[i * kK + j] = cluster + (i + 1 + j * 3) % kSize;
            start.distances()[i * kK + j] = 0;
        }
    const KnnGraph refined = refine(vectors, start, gpu_params(kK)).graph;
    expect_valid_graph(refined, vectors);
    EXPECT_GE(test::Truth(vectors, Metric::L2).recall_of(refined), 0.9);
}

}  // namespace
}  // namespace gnnd
