// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/shards/cache.h"
#include "tests/io_conditions.h"

namespace gnnd::shards {
namespace {

using Kind = Cache::Kind;
using test::message_of;

bool all(const Cache::Key&) {
    return true;
}

class ShardCache : public testing::Test {
  protected:
    /// Lists of a shard, as they are on the disk.
    Cache::Pin pin(Cache& cache, int shard, std::size_t bytes = 100) {
        return cache.pin({Kind::lists, shard}, bytes, [&, bytes](std::byte* data) {
            ++fills_;
            std::memset(data, disk_[shard], bytes);
        });
    }
    static int value(const Cache::Pin& pin) { return int(pin.data()[0]); }
    static void set(const Cache::Pin& pin, int value) {
        std::memset(pin.data(), value, pin.bytes());
        pin.mark_dirty();
    }
    Cache::Write writer() {
        return [this](const Cache::Key& key, const std::byte* data) {
            if (broken_) throw IoError("broken");
            disk_[int(key.number)] = int(data[0]);
            ++writes_;
        };
    }

    HeapResources resources_;
    std::map<int, int> disk_;
    int fills_ = 0, writes_ = 0;
    bool broken_ = false;
};

TEST_F(ShardCache, TheLeastRecentlyUsedGoesFirst) {
    Cache cache(300, resources_, writer());
    for (const int shard : {0, 1, 2}) pin(cache, shard);
    pin(cache, 0);
    EXPECT_EQ(fills_, 3);
    pin(cache, 3);  // 1 goes
    for (const int shard : {0, 2, 3}) pin(cache, shard);
    EXPECT_EQ(fills_, 4);
    pin(cache, 1);
    EXPECT_EQ(fills_, 5);
    EXPECT_EQ(cache.held(), 300u);
    EXPECT_EQ(cache.peak(), 300u);
    EXPECT_EQ(writes_, 0);
}

TEST_F(ShardCache, WhatWasChangedIsWrittenBeforeItGoes) {
    Cache cache(200, resources_, writer());
    set(pin(cache, 0), 7);
    set(pin(cache, 1), 6);
    EXPECT_EQ(writes_, 0);
    pin(cache, 2);
    EXPECT_EQ(writes_, 1);
    EXPECT_EQ(disk_[0], 7);
    EXPECT_EQ(value(pin(cache, 0)), 7);
    EXPECT_EQ(writes_, 1) << "2 goes";
    set(pin(cache, 0), 8);
    cache.flush(all);
    EXPECT_EQ(disk_[0], 8);
    EXPECT_EQ(disk_[1], 6);
    cache.flush(all);
    EXPECT_EQ(writes_, 3) << "once is enough";
}

TEST_F(ShardCache, WhatWasNotChangedGoesBeforeThat) {
    Cache cache(300, resources_, writer());
    set(pin(cache, 0), 7);
    pin(cache, 1);
    pin(cache, 2);
    pin(cache, 3);  // 1 goes
    pin(cache, 1);  // 2 goes
    EXPECT_EQ(writes_, 0);
    EXPECT_EQ(fills_, 5);
    EXPECT_EQ(value(pin(cache, 0)), 7);
    EXPECT_EQ(fills_, 5);
}

TEST_F(ShardCache, WhatIsPinnedStays) {
    Cache cache(300, resources_, writer());
    const Cache::Pin one = pin(cache, 0), two = pin(cache, 1, 150);
    set(one, 5);
    EXPECT_EQ(message_of<Error>([&] { pin(cache, 2); }),
              "host memory: 100 bytes more while 250 are in use, allowed are 300");
    EXPECT_EQ(message_of<Error>([&] { cache.scratch(301); }),
              "host memory: 301 bytes more while 250 are in use, allowed are 300");
    EXPECT_EQ(value(pin(cache, 2, 50)), 0);
    cache.flush(all);
    EXPECT_EQ(writes_, 0) << "in somebody's hands";
}

TEST_F(ShardCache, ScratchIsGivenOutAgain) {
    Cache cache(250, resources_, writer());
    const Cache::Pin one = pin(cache, 0);
    const std::byte* place = nullptr;
    {
        const Cache::Pin scratch = cache.scratch(50), other = cache.scratch(100);
        EXPECT_NE(scratch.data(), other.data());
        place = scratch.data();
        EXPECT_EQ(cache.held(), 250u);
    }
    EXPECT_EQ(cache.held(), 250u) << "kept";
    EXPECT_EQ(cache.scratch(50).data(), place);
    const Cache::Pin two = pin(cache, 1, 150);  // takes the room of both
    EXPECT_EQ(cache.held(), 250u);
    EXPECT_EQ(message_of<Error>([&] { cache.scratch(50); }),
              "host memory: 50 bytes more while 250 are in use, allowed are 250");
}

TEST_F(ShardCache, ErrorsLeaveItAsItWas) {
    Cache cache(200, resources_, writer());
    EXPECT_THROW(cache.pin({Kind::vectors, 0}, 100, [](std::byte*) { throw IoError("no such file"); }), IoError);
    EXPECT_EQ(cache.held(), 0u);
    set(pin(cache, 0), 9);
    set(pin(cache, 1), 8);
    broken_ = true;
    EXPECT_THROW(pin(cache, 2), IoError);
    EXPECT_THROW(cache.flush(all), IoError);
    EXPECT_EQ(value(pin(cache, 0)), 9);
    broken_ = false;
    pin(cache, 1);
    pin(cache, 2);
    EXPECT_EQ(disk_[0], 9);
}

// Every thread has its own shards; what they count up must arrive on the disk, whatever is evicted in between.
TEST_F(ShardCache, ManyThreads) {
    constexpr int kThreads = 4, kShards = 5, kRounds = 2000;
    std::array<std::atomic<int>, kThreads * kShards> disk{};
    Cache cache(std::size_t(kThreads) * 200 + 100, resources_, [&](const Cache::Key& key, const std::byte* data) {
        disk[std::size_t(key.number)] = *reinterpret_cast<const int*>(data);
    });
    std::array<int, kThreads * kShards> counts{};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int round = 0; round < kRounds; ++round) {
                const int shard = t * kShards + int(random() % kShards);
                const Cache::Pin pin = cache.pin({Kind::lists, shard}, 100, [&](std::byte* data) {
                    *reinterpret_cast<int*>(data) = disk[std::size_t(shard)];
                });
                const Cache::Pin scratch = cache.scratch(100);
                ++*reinterpret_cast<int*>(pin.data());
                pin.mark_dirty();
                ++counts[std::size_t(shard)];
                if (round % 100 == 0) cache.flush(all);
            }
        });
    for (std::thread& thread : threads) thread.join();
    cache.flush(all);
    for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(disk[i], counts[i]);
    EXPECT_LE(cache.peak(), std::size_t(kThreads) * 200 + 100);
}

// The item that was forgotten is not written, and is filled anew; what is not there is not found.
TEST(ShardCacheItems, AreFoundAndForgotten) {
    HeapResources heap;
    int filled = 0, written = 0;
    Cache cache(100, heap, [&](const Cache::Key&, const std::byte*) { ++written; });
    const Cache::Key key{Cache::Kind::lists, 3};
    EXPECT_FALSE(cache.find(key));
    Cache::Pin pin = cache.pin(key, 60, [&](std::byte*) { ++filled; });
    pin.mark_dirty();
    cache.forget(std::move(pin));
    EXPECT_EQ(cache.held(), 60u) << "kept for others";
    EXPECT_FALSE(cache.find(key));
    cache.pin(key, 60, [&](std::byte*) { ++filled; }).mark_dirty();
    EXPECT_TRUE(cache.find(key));
    cache.flush([](const Cache::Key&) { return true; });
    EXPECT_EQ(filled, 2);
    EXPECT_EQ(written, 1);
}

TEST(ShardCacheItems, MemoryOfTheForgottenIsGivenOutAgain) {
    HeapResources heap;
    Cache cache(250, heap, [](const Cache::Key&, const std::byte*) { FAIL() << "nothing is to be written"; });
    const auto key = [](int shard) { return Cache::Key{Cache::Kind::lists, shard}; };
    Cache::Pin gone = cache.pin(key(0), 60, nullptr);
    gone.mark_dirty();
    const std::byte* place = gone.data();
    const Cache::Pin other = cache.pin(key(1), 40, nullptr);
    cache.forget(std::move(gone));
    EXPECT_EQ(cache.held(), 100u) << "kept";
    const Cache::Pin smaller = cache.pin(key(2), 50, nullptr);
    EXPECT_NE(smaller.data(), place) << "of another size";
    EXPECT_EQ(cache.held(), 150u);
    {
        const Cache::Pin again = cache.pin(key(3), 60, [](std::byte* data) { data[0] = std::byte{3}; });
        EXPECT_EQ(again.data(), place);
        EXPECT_EQ(again.data()[0], std::byte{3}) << "filled like any other";
        EXPECT_NE(cache.pin(key(4), 50, nullptr).data(), place) << "in use";
    }
    cache.forget(cache.find(key(3)));
    cache.pin(key(5), 90, nullptr);
    EXPECT_TRUE(cache.find(key(4))) << "what is forgotten goes first, whenever it was used";
    EXPECT_EQ(cache.held(), 230u);
}

TEST(ShardCacheItems, AreForgottenByNameOnlyWhenThatLosesNothing) {
    HeapResources heap;
    int written = 0;
    Cache cache(100, heap, [&](const Cache::Key&, const std::byte*) { ++written; });
    const Cache::Key key{Cache::Kind::lists, 3};
    cache.forget(key);
    {
        const Cache::Pin pin = cache.pin(key, 60, nullptr);
        cache.forget(key);
        EXPECT_TRUE(cache.find(key)) << "pinned";
        pin.mark_dirty();
    }
    cache.forget(key);
    EXPECT_TRUE(cache.find(key)) << "not written";
    cache.flush([](const Cache::Key&) { return true; });
    cache.forget(key);
    EXPECT_FALSE(cache.find(key));
    EXPECT_EQ(cache.held(), 60u);
    EXPECT_EQ(written, 1);
}

// Whoever pins without filling is about to overwrite: half of the old and half of the new is not to reach the disk.
TEST(ShardCacheItems, AreNotWrittenAnyMoreOnceSomebodyOverwritesThem) {
    HeapResources heap;
    int written = 0;
    Cache cache(100, heap, [&](const Cache::Key&, const std::byte*) { ++written; });
    const Cache::Key key{Cache::Kind::lists, 3};
    cache.pin(key, 60, nullptr).mark_dirty();
    cache.pin(key, 60, [](std::byte*) { ADD_FAILURE() << "it is there"; });
    cache.pin(key, 60, nullptr);
    cache.flush([](const Cache::Key&) { return true; });
    EXPECT_EQ(written, 0);
}

TEST(ShardCacheItems, RoomIsWaitedForThatATakenOutItemLeaves) {
    HeapResources heap;
    int written = 0;
    Cache cache(100, heap, [&](const Cache::Key&, const std::byte*) { ++written; });
    const Cache::Key key{Cache::Kind::whole, 3}, other{Cache::Kind::whole, 4};
    cache.pin(key, 60, [](std::byte* data) { data[0] = std::byte{7}; }).mark_dirty();
    std::atomic<bool> taking{false}, taken{false};
    std::thread thread([&] {
        cache.take_out(key, [&](std::byte* data) {
            taking = true;
            usleep(20000);
            EXPECT_EQ(data[0], std::byte{7});
            taken = true;
        });
    });
    while (!taking) usleep(100);
    cache.pin(other, 60, [&](std::byte*) { EXPECT_TRUE(taken); });
    thread.join();
    EXPECT_FALSE(cache.find(key));
    EXPECT_EQ(written, 0);
    cache.take_out(key, [](std::byte*) { ADD_FAILURE() << "it is not there"; });
    EXPECT_THROW(cache.take_out(other, [](std::byte*) { throw IoError("broken"); }), IoError);
    EXPECT_TRUE(cache.find(other));
}

}  // namespace
}  // namespace gnnd::shards
