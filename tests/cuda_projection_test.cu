// SPDX-License-Identifier: MIT
// Projections of long rows, and builds that compare them. Without a GPU all of it is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "gnnd/builder.h"
#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/space/projection.h"
#include "gnnd/error.h"
#include "tests/cuda_lists.h"
#include "tests/gpu.h"
#include "tests/hard_sets.h"
#include "tests/invariants.h"
#include "tests/reference.h"

namespace gnnd::cuda {
namespace {

using test::Vectors;

/// Combinations of `rank` random vectors, so that so many directions hold all of them.
Vectors of_rank(std::int64_t n, std::int64_t d, int rank, DType dtype = DType::f32) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> basis(std::size_t(rank * d));
    for (float& x : basis) x = normal(random);
    Vectors vectors(n, d, dtype);
    std::vector<float> weights(static_cast<std::size_t>(rank));
    for (std::int64_t i = 0; i < n; ++i) {
        for (float& w : weights) w = normal(random);
        for (std::int64_t c = 0; c < d; ++c) {
            float sum = 3;  // far from the origin
            for (int r = 0; r < rank; ++r) sum += weights[std::size_t(r)] * basis[std::size_t(r * d + c)];
            vectors.set(i, c, sum);
        }
    }
    return vectors;
}

/// Vectors as project() leaves them, on the host.
struct Projected {
    std::int64_t n;
    std::vector<std::uint8_t> codes;
    std::vector<u32> norms;
    std::vector<float> errors;
    SpaceInfo info;

    Projected(const VectorView& vectors, Metric metric, u32 seed = 1) : n(vectors.n) {
        const OnDevice<std::byte> copy(std::size_t(n * vectors.row_bytes()),
                                       static_cast<const std::byte*>(vectors.data));
        const RawVectors raw{copy.get(), n, vectors.d, vectors.row_bytes(), vectors.dtype};
        const VectorForm form = form_of(vectors, false, metric);
        const OnDevice<std::uint8_t> rows(std::size_t(n * form.row_bytes));
        const OnDevice<u32> bias{std::size_t(n)};
        const OnDevice<float> mean(std::size_t(2 * vectors.d)), code_errors{std::size_t(n)};
        const OnDevice<SpaceInfo> there(1);
        prepare_space(raw, metric, form, rows, bias, mean, there, nullptr);
        const Points halves = points_of(raw, metric, form, rows, bias);
        const OnDevice<std::byte> kept(std::size_t(projection_bytes(form.row_bytes))),
            work(std::size_t(projection_work_bytes(n, form.row_bytes)));
        find_projection(halves, seed, kept, work, nullptr);
        project(halves, is_normalized(metric), kept, rows, bias, code_errors, there, work, nullptr);
        codes = rows.read();
        norms = bias.read();
        errors = code_errors.read();
        info = there.read()[0];
    }
    int code(std::int64_t i, int c) const { return std::int8_t(codes[std::size_t(i * kComponents + c)]); }
    /// The squared distance of the codes.
    double apart(std::int64_t i, std::int64_t j) const {
        double product = 0;
        for (int c = 0; c < kComponents; ++c) product += code(i, c) * code(j, c);
        return norms[std::size_t(i)] + norms[std::size_t(j)] - 2 * product;
    }
    /// The metric's value, from the codes.
    double distance(std::int64_t i, std::int64_t j) const {
        return apart(i, j) * double(info.unit) + double(info.offset);
    }
};

struct ProjectionCase {
    Metric metric;
    DType dtype;
    std::int64_t n, d;
    friend std::ostream& operator<<(std::ostream& out, const ProjectionCase& c) {
        return out << name_of(c.metric) << '_' << name_of(c.dtype) << '_' << c.n << '_' << c.d;
    }
};

class CudaKernelProjection : public testing::TestWithParam<ProjectionCase> {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }
};

TEST_P(CudaKernelProjection, KeepsDistancesOfWhatFitsIntoIt) {
    const auto& [metric, dtype, n, d] = GetParam();
    const Vectors vectors = of_rank(n, d, 30, dtype);
    const Projected projected(vectors, metric);
    for (std::int64_t i = 0; i < n; ++i) {
        u32 norm = 0;
        for (int c = 0; c < kComponents; ++c) norm += u32(projected.code(i, c) * projected.code(i, c));
        ASSERT_EQ(projected.norms[std::size_t(i)], norm) << i;
    }
    // The errors of the codes, in the metric's units, bound the error of a distance.
    const auto error_of = [&](std::int64_t i) {
        return double(projected.errors[std::size_t(i)]) * std::sqrt(std::abs(double(projected.info.unit)));
    };
    for (std::int64_t i = 0; i + 7 < n; i += 11) {
        const double wanted = test::reference_distance(vectors, metric, i, i + 7).value;
        const double got = projected.distance(i, i + 7), error = error_of(i) + error_of(i + 7);
        if (metric == Metric::L2)
            ASSERT_NEAR(std::sqrt(got), std::sqrt(wanted), error + 0.01 * std::sqrt(wanted)) << i;
        else
            ASSERT_NEAR(std::sqrt(1 - got), std::sqrt(1 - wanted), error + 0.01) << i;
    }
}

/// Whatever is lost: no two codes are farther apart than their vectors, the scale and their errors say.
TEST_P(CudaKernelProjection, MakesNoDistanceLonger) {
    const auto& [metric, dtype, n, d] = GetParam();
    for (const bool of_few : {true, false}) {
        const Vectors vectors = of_few ? of_rank(n, d, 30, dtype) : test::vectors_for(metric, n, d, dtype);
        const Projected projected(vectors, metric);
        const float largest = *std::max_element(projected.errors.begin(), projected.errors.end());
        EXPECT_EQ(std::bit_cast<float>(projected.info.largest_error), largest);
        EXPECT_GE(projected.info.longest, 1);
        EXPECT_LE(projected.info.longest, 1.01F) << "directions are nearly orthonormal";
        double closest = 0;  // to the bound
        for (std::int64_t i = 0; i + 7 < n; i += 3)
            for (const std::int64_t j : {i + 1, i + 7, (i * 31 + 5) % n}) {
                const double value = test::reference_distance(vectors, metric, i, j).value,
                             squared = metric == Metric::L2 ? value : 2 - 2 * value,
                             apart = std::sqrt(projected.apart(i, j));
                const double bound =
                    std::sqrt(std::max(squared, 0.0)) * double(projected.info.scale) * double(projected.info.longest) +
                    double(projected.errors[std::size_t(i)]) + double(projected.errors[std::size_t(j)]);
                ASSERT_LE(apart, bound) << i << ' ' << j;
                closest = std::max(closest, apart / bound);
            }
        if (of_few) EXPECT_GT(closest, 0.8) << "the bound says something";
    }
}

TEST_P(CudaKernelProjection, IsTheSameForTheSameSeed) {
    const auto& [metric, dtype, n, d] = GetParam();
    const Vectors vectors = test::vectors_for(metric, n, d, dtype);
    const Projected one(vectors, metric), two(vectors, metric), other(vectors, metric, 2);
    const std::size_t bytes = std::size_t(n) * kComponents;
    EXPECT_TRUE(std::equal(one.codes.begin(), one.codes.begin() + bytes, two.codes.begin()));
    EXPECT_FALSE(std::equal(one.codes.begin(), one.codes.begin() + bytes, other.codes.begin()));
    EXPECT_EQ(one.info.unit, two.info.unit);
}

INSTANTIATE_TEST_SUITE_P(All, CudaKernelProjection,
                         testing::Values(ProjectionCase{Metric::L2, DType::f32, 3000, 384},
                                         ProjectionCase{Metric::L2, DType::f32, 700, 129},
                                         ProjectionCase{Metric::Cosine, DType::f32, 2500, 500},
                                         ProjectionCase{Metric::L2, DType::f16, 2049, 300},
                                         ProjectionCase{Metric::Cosine, DType::bf16, 3000, 257}),
                         testing::PrintToStringParamName());

TEST(CudaKernelProjectionRows, ThatAreEqualHaveEqualCodes) {
    SKIP_WITHOUT_GPU();
    Vectors vectors(500, 400, DType::f32);
    for (std::int64_t i = 0; i < 500; ++i)
        for (std::int64_t c = 0; c < 400; ++c) vectors.set(i, c, float(c % 13) + 0.5F);
    const Projected projected(vectors, Metric::L2);
    for (std::int64_t i = 1; i < 500; ++i) EXPECT_EQ(projected.distance(0, i), 0) << i;
}

class CudaProjected : public testing::Test {
  protected:
    void SetUp() override { SKIP_WITHOUT_GPU(); }

    static BuildParams asked(int k, Metric metric) {
        BuildParams params = test::gpu_params(k, metric);
        params.codes = Codes::pca;
        params.trees = 10;  // a limit, without which small sets are compared pair by pair
        return params;
    }
};

TEST_F(CudaProjected, BuildsReachTheRecall) {
    for (const Metric metric : {Metric::L2, Metric::Cosine})
        for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
            for (const bool deterministic : {false, true}) {
                SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << name_of(dtype) << ' ' << deterministic);
                const Vectors vectors = of_rank(20000, 300, 14, dtype);
                const test::Truth truth(vectors, metric);
                BuildParams params = asked(32, metric);
                params.deterministic = deterministic;
                const BuildResult result = build(vectors, params);
                EXPECT_EQ(name_of(result.stats.choices.codes), name_of(Codes::pca));
                EXPECT_GE(result.stats.recall.low, 0.99);
                EXPECT_GE(truth.recall_of(result.graph), 0.985);
                test::expect_valid_graph(result.graph, vectors);
                if (deterministic) {
                    EXPECT_TRUE(test::same_graph(build(vectors, params).graph, result.graph));
                }
            }
}

TEST_F(CudaProjected, LeaveExactGraphsExact) {
    for (const Metric metric : {Metric::L2, Metric::Cosine})
        for (const int rank : {14, 120, 300}) {
            SCOPED_TRACE(testing::Message() << name_of(metric) << ' ' << rank);
            const Vectors vectors = of_rank(6000, 300, rank);
            BuildParams params = asked(20, metric);
            params.recall = 1;
            const BuildResult result = build(vectors, params);
            EXPECT_EQ(name_of(result.stats.stop), name_of(StopReason::exact));
            EXPECT_GE(test::Truth(vectors, metric).recall_of(result.graph), 0.9995);
            test::expect_valid_graph(result.graph, vectors);
        }
}

/// Independent components: 128 directions say little of 400.
Vectors independent() {
    test::HardSet set = benchs::hard_set("gauss");
    set.d = 400;
    return test::vectors_of(set, 20000, DType::f32);
}

TEST_F(CudaProjected, WhatIsLostIsNoticed) {
    const Vectors vectors = independent();
    for (const bool deterministic : {false, true}) {
        BuildParams params = asked(20, Metric::L2);
        params.deterministic = deterministic;
        const BuildResult result = build(vectors, params);
        EXPECT_NE(name_of(result.stats.choices.codes), name_of(Codes::pca));
        for (std::size_t i = 0; i < result.stats.iterations.size(); ++i)
            EXPECT_EQ(result.stats.iterations[i].iteration, int(i));
        test::expect_valid_graph(result.graph, vectors);
    }
    const BuildResult exact = build(vectors, [] {
        BuildParams params = asked(20, Metric::L2);
        params.trees = 0;
        return params;
    }());
    EXPECT_GE(test::Truth(vectors, Metric::L2).recall_of(exact.graph), 0.985);
}

TEST_F(CudaProjected, IterationsOfTheCallerAreALimit) {
    const Vectors vectors = independent();
    for (const int iterations : {0, 1, 2, 3, 5}) {
        BuildParams params = asked(20, Metric::L2);
        params.iterations = iterations;
        for (const float recall : {0.0F, 0.99F}) {
            params.recall = recall;
            const BuildResult result = build(vectors, params);
            // A record each, and one for each time that lists start.
            EXPECT_LE(int(result.stats.iterations.size()), iterations + 2) << iterations << ' ' << recall;
            test::expect_valid_graph(result.graph, vectors);
        }
    }
}

/// Two iterations of the projection, all others of all components.
TEST_F(CudaProjected, WithoutARecallAllComponentsFollow) {
    const Vectors vectors = of_rank(20000, 300, 14);
    BuildParams params = test::converging(asked(32, Metric::L2));
    const BuildResult result = build(vectors, params);
    EXPECT_EQ(name_of(result.stats.choices.codes), name_of(Codes::int8));
    EXPECT_GE(test::Truth(vectors, Metric::L2).recall_of(result.graph), 0.99);
}

TEST_F(CudaProjected, LongerListsAreOfTheProjection) {
    const Vectors vectors = of_rank(20000, 300, 40);
    BuildParams params = asked(10, Metric::L2);
    params.recall = 0.999F;
    params.trees = 0;
    params.deterministic = true;  // what takes less time must not decide
    const BuildResult result = build(vectors, params);
    EXPECT_GE(test::Truth(vectors, Metric::L2).recall_of(result.graph), 0.998);
    test::expect_valid_graph(result.graph, vectors);
}

/// A projection takes more room than rows of few components as float16.
TEST_F(CudaProjected, RowsMayBeShorter) {
    for (const std::int64_t d : {3, 20, 60, 128}) {
        SCOPED_TRACE(d);
        const Vectors vectors = of_rank(6000, d, 3);
        for (const float recall : {0.99F, 1.0F}) {
            BuildParams params = asked(32, Metric::L2);
            params.recall = recall;
            const BuildResult result = build(vectors, params);
            EXPECT_GE(test::Truth(vectors, Metric::L2).recall_of(result.graph), 0.985);
            test::expect_valid_graph(result.graph, vectors);
        }
    }
}

TEST_F(CudaProjected, RowsThatAreBadAreRefused) {
    for (const Metric metric : {Metric::L2, Metric::Cosine})
        for (const float bad : {NAN, INFINITY}) {
            Vectors vectors = of_rank(5000, 300, 14);
            vectors.set(4321, 20, bad);
            EXPECT_THROW(build(vectors, asked(20, metric)), InvalidArgument);
        }
}

TEST_F(CudaProjected, InnerProductsAreRefused) {
    const Vectors vectors = of_rank(5000, 300, 14);
    EXPECT_THROW(build(vectors, asked(20, Metric::InnerProduct)), InvalidArgument);
}

}  // namespace
}  // namespace gnnd::cuda
