// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "gnnd/cuda/memory/piece.h"
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

/// Has memory for whatever the piece does not.
class Others final : public Resources {
  public:
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    void* allocate_device(std::size_t bytes, Stream) override {
        held += bytes;
        return memory.data();
    }
    std::size_t free_device_memory() override { return memory.size(); }
    void deallocate_device(void* pointer, std::size_t bytes, Stream) noexcept override {
        EXPECT_EQ(pointer, memory.data());
        held -= bytes;
    }
    std::array<std::byte, 4000> memory{};
    std::size_t held = 0;

  private:
    HeapResources heap_;
};

TEST(Piece, GivesTheFirstGapThatIsLargeEnough) {
    std::array<std::byte, 1500> memory{};
    Others others;
    Piece piece(memory.data(), memory.size(), true, others);
    EXPECT_EQ(piece.free_device_memory(), 1500u);
    void* const first = piece.allocate_device(1, nullptr);
    void* const second = piece.allocate_device(257, nullptr);
    void* const third = piece.allocate_device(500, nullptr);
    EXPECT_EQ(first, &memory[0]);
    EXPECT_EQ(second, &memory[256]);
    EXPECT_EQ(third, &memory[768]);
    EXPECT_EQ(piece.free_device_memory(), 220u);
    void* const elsewhere = piece.allocate_device(220, nullptr);  // parts begin and end at whole 256 bytes
    EXPECT_EQ(elsewhere, others.memory.data());
    EXPECT_EQ(others.held, 220u);
    piece.deallocate_device(elsewhere, 220, nullptr);
    EXPECT_EQ(others.held, 0u);
    piece.deallocate_device(second, 257, nullptr);
    EXPECT_EQ(piece.free_device_memory(), 512u);
    void* const again = piece.allocate_device(256, nullptr);
    EXPECT_EQ(again, &memory[256]);
    EXPECT_EQ(piece.allocate_device(256, nullptr), &memory[512]);
    piece.deallocate_device(first, 1, nullptr);
    piece.deallocate_device(again, 256, nullptr);
    EXPECT_EQ(piece.allocate_device(512, nullptr), &memory[0]) << "gaps that meet are one";
}

TEST(Piece, PlansWithOthersUnlessItIsBounded) {
    std::array<std::byte, 512> memory{};
    Others others;
    Piece bounded(memory.data(), memory.size(), true, others), open(memory.data(), memory.size(), false, others);
    EXPECT_EQ(bounded.free_device_memory(), 512u);
    EXPECT_EQ(open.free_device_memory(), 4000u);
    bounded.allocate_device(512, nullptr);
    EXPECT_EQ(bounded.free_device_memory(), 1u) << "0 is not known";
}

}  // namespace
}  // namespace gnnd::cuda
