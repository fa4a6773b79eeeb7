// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/shards/background.h"

namespace gnnd::shards {
namespace {

TEST(ShardBackground, DoesOneThingAfterTheOther) {
    std::vector<int> done;
    Background background;
    for (int i = 0; i < 100; ++i) background.start([&done, i] { done.push_back(i); });
    background.wait();
    EXPECT_EQ(done.size(), 100u);
    background.start([] {
        usleep(10000);
        throw IoError("broken");
    });
    background.start([&] { done.clear(); });  // which waits, and does not come to it
    EXPECT_THROW(background.wait(), IoError);
    EXPECT_EQ(done.size(), 100u);
    background.start([&] { done.clear(); });
    background.wait();
    EXPECT_TRUE(done.empty());
}

TEST(ShardBackground, DoesAsManyThingsAtATimeAsItHasThreads) {
    constexpr int kThreads = 3;
    std::atomic<int> running{0}, begun{0};
    Background background(kThreads);
    for (int i = 0; i < 30; ++i)
        background.start([&] {
            EXPECT_LE(++running, kThreads);
            ++begun;
            while (begun < kThreads) usleep(100);
            --running;
        });
    background.wait();
    EXPECT_EQ(begun, 30);
}

}  // namespace
}  // namespace gnnd::shards
