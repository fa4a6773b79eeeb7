// SPDX-License-Identifier: MIT
// Vectors at both ends of what float32 holds, on the CPU.
#include "tests/scales.h"

#include <gtest/gtest.h>

#include "tests/cpu.h"

namespace gnnd {
namespace {

using test::cpu_params;

TEST(Scales, BuildsAreAsGoodAsAnywhere) {
    test::expect_good_builds_at_scales(cpu_params(20));
}

TEST(Scales, MergesAreAsGoodAsAnywhere) {
    test::expect_good_merges_at_scales(cpu_params(20));
}

TEST(Scales, VectorsWhoseDistancesWouldOverflowAreRefused) {
    test::expect_large_rows_are_named(cpu_params(5));
}

}  // namespace
}  // namespace gnnd
