// SPDX-License-Identifier: MIT
#include "gnnd/device.h"

#include <gtest/gtest.h>

#include "tests/reference.h"

namespace {

using gnnd::DType;

TEST(Device, HostMemoryIsOnNoGpu) {
    const int value = 0;
    EXPECT_EQ(gnnd::device_of(&value), -1);
    std::string why;
    if (gnnd::device_count(&why) == 0) {
        EXPECT_FALSE(why.empty());
    }
}

TEST(Device, CopiesToTheHostHaveNoGaps) {
    const auto vectors = gnnd::test::random_vectors(10, 5, DType::f16);
    gnnd::VectorView odd = vectors;
    odd.n = 5;
    odd.stride = 2 * odd.row_bytes();
    std::vector<std::byte> copy(5 * 5 * 2);
    gnnd::copy_to_host(odd, copy.data());
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::equal(odd.row(i), odd.row(i) + 10, copy.begin() + i * 10)) << i;
}

}  // namespace
