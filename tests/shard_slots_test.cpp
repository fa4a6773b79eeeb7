// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "gnnd/error.h"
#include "gnnd/shards/cuda/slots.h"
#include "tests/io_conditions.h"

namespace gnnd::cuda {
namespace {

TEST(ShardSlots, AreAsManyAsThereAre) {
    std::array<std::byte, 300> memory{};
    Slots slots(memory.data(), 100, 3);
    std::set<void*> places{slots.allocate(100), slots.allocate(100), slots.allocate(100)};
    EXPECT_EQ(places, (std::set<void*>{&memory[0], &memory[100], &memory[200]}));
    EXPECT_EQ(test::message_of<Error>([&] { slots.allocate(100); }),
              "device memory: no place is left for another shard");
    slots.deallocate(&memory[100], 100);
    EXPECT_EQ(slots.allocate(100), &memory[100]);
}

}  // namespace
}  // namespace gnnd::cuda
