// SPDX-License-Identifier: MIT
// The device memory of a build, as it is planned; no GPU is needed for that.
#include <gtest/gtest.h>

#include "gnnd/cuda/recall/reach_recall.h"
#include "tests/gpu.h"

namespace gnnd::cuda {
namespace {

/// What compares all pairs takes the place of lists and candidates, and packs rows meanwhile.
TEST(CudaPlan, WhatPacksRowsLiesBeforeWhatAllPairsTake) {
    for (const std::int64_t n : {5000, 100000})
        for (const std::int64_t d : {65, 768, 8192})
            for (const int k : {10, 64}) {
                SCOPED_TRACE(testing::Message() << n << " x " << d << ", k = " << k);
                const detail::Input input{{VectorView{nullptr, n, d, DType::f32, 0}, {}}, {}};
                const BuildParams params = test::gpu_params(k);
                Choices choices;
                choices.list_size = k;
                choices.samples = 32;
                choices.capacity = 36;
                const BuildPlan plan =
                    make_build_plan(input, {}, params, choices, 1 << 20, 0, bytes_of_all_pairs(input, {}, params), 0);
                ASSERT_GT(plan.all_pairs.bytes, 0u);
                for (const Part& part : {plan.rows, plan.bias, plan.code_errors, plan.packing, plan.small}) {
                    EXPECT_GT(part.bytes, 0u);
                    EXPECT_LE(part.offset + part.bytes, plan.all_pairs.offset);
                }
            }
}

/// Rows that are one tile as float16, and those whose sums might overflow, never become codes to be compared all.
TEST(CudaPlan, CodesAreComparedWhereTheySaveProducts) {
    for (const auto& [metric, d, may] : {std::tuple{Metric::L2, 64, false},
                                         {Metric::L2, 65, true},
                                         {Metric::Cosine, 65, true},
                                         {Metric::InnerProduct, 8192, true},
                                         {Metric::InnerProduct, 8193, false},
                                         {Metric::L1, 100, false}}) {
        SCOPED_TRACE(testing::Message() << name_of(metric) << ", d = " << d);
        const detail::Input input{{VectorView{nullptr, 5000, d, DType::f32, 0}, {}}, {}};
        Choices choices;
        choices.list_size = 32;
        choices.samples = 32;
        choices.capacity = 36;
        const BuildPlan plan = make_build_plan(input, {}, test::gpu_params(10, metric), choices, 1 << 20, 0, 0, 0);
        EXPECT_EQ(plan.code_errors.bytes, may ? 5000u * 4 : 0u);
    }
}

/// Trees may bring more candidates than cross-matches, in the place of what comes after them, and take no more memory.
TEST(CudaPlan, CandidatesOfTreesLieWhereSamplesWillBe) {
    const BuildParams params = test::gpu_params(64);
    for (const auto& [samples, least] : {std::pair{8, 8}, std::pair{16, 40}, std::pair{32, 96}, std::pair{64, 128}})
        for (const std::int64_t n : {2000, 1000000}) {
            SCOPED_TRACE(testing::Message() << "p " << samples << ", n " << n);
            const detail::Input input{{VectorView{nullptr, n, 128, DType::u8, 0}, {}}, {}};
            Choices choices;
            choices.list_size = 64;
            choices.samples = samples;
            choices.capacity = samples + 4;
            const BuildPlan plan = make_build_plan(input, {}, params, choices, 1 << 10, 0, 0, 0);
            EXPECT_GE(plan.tree_capacity, std::max(least, plan.capacity));
            EXPECT_LE(plan.tree_capacity, kMostToFill);
            std::size_t end = plan.candidates.offset + std::size_t(n * plan.tree_capacity * 8);
            for (const Part& part : {plan.keys[0], plan.keys[1], plan.order[0], plan.order[1], plan.sort}) {
                EXPECT_GE(part.offset, end);
                end = part.offset + part.bytes;
            }
            EXPECT_LE(end, plan.total);
            EXPECT_LE(plan.sample_ids.offset + plan.sample_ids.bytes, plan.total);
            EXPECT_GE(plan.sample_ids.offset + plan.sample_ids.bytes + 256, plan.total);
        }
}

}  // namespace
}  // namespace gnnd::cuda
