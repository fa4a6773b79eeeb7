// SPDX-License-Identifier: MIT
// Zeros of either sign are the same number to the CPU backend.
#include "tests/signed_zeros.h"

#include <tuple>

#include "tests/cpu.h"

namespace gnnd {
namespace {

class SignedZeros : public testing::TestWithParam<std::tuple<Metric, DType>> {};

TEST_P(SignedZeros, DoNotCount) {
    const auto [metric, dtype] = GetParam();
    test::expect_signs_of_zeros_do_not_count(dtype, test::cpu_params(10, metric));
}

INSTANTIATE_TEST_SUITE_P(All, SignedZeros,
                         testing::Combine(testing::ValuesIn(kMetrics), testing::Values(DType::f32, DType::bf16)),
                         test::name_of_both);

}  // namespace
}  // namespace gnnd
