// SPDX-License-Identifier: MIT
// Threads that cannot be started, as under `ulimit -u` or a container's pids.max.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "gnnd/error.h"
#include "gnnd/shards/background.h"
#include "tests/failing_calls.h"
#include "tests/io_conditions.h"
#include "tests/shard_fixture.h"

namespace gnnd::test {
namespace {

const std::string kNoThread = "cannot start a thread: Resource temporarily unavailable";

TEST(ShardThreads, ThatRunEndWhenTheNextCannotBeStarted) {
    if (!FailingThreads::possible()) GTEST_SKIP() << "a sanitizer";
    for (int allowed = 0; allowed < 3; ++allowed) {
        const FailingThreads none(allowed);
        EXPECT_EQ(message_of<Error>([] { shards::Background background(3); }), kNoThread);
    }
    std::atomic<int> done{0};
    const FailingThreads none(2);
    EXPECT_EQ(message_of<Error>([&] {
                  shards::Threads threads;
                  for (int i = 0; i < 3; ++i) threads.start([&] { ++done; });
              }),
              kNoThread);
    EXPECT_EQ(done, 2);
}

TEST_F(Sharded, AThreadThatCannotBeStartedIsAnError) {
    if (!FailingThreads::possible()) GTEST_SKIP() << "a sanitizer";
    make_base(120);
    params_.k = 8;
    params_.threads = 1;
    ShardParams params = shards(4);
    params.workers = 2;
    int failures = 0;
    for (int allowed = 0;; ++allowed) {
        std::filesystem::remove_all(work());
        params.resume = false;
        {
            const FailingThreads none(allowed);
            const std::string message = message_of<Error>([&] { build(params); });
            if (!none.has_failed()) break;
            // The last threads only speed up the end, which goes on without.
            EXPECT_TRUE(message == kNoThread || ShardedGraph(work()).n() == base_->n()) << message;
        }
        ++failures;
        params.resume = true;
        build(params);
        expect_exact();
    }
    EXPECT_GT(failures, 15);
}

TEST(ShardTraffic, IsOfWhoeverCountsIt) {
    bool done = false;
    shards::counted([&] { done = true; })();
    EXPECT_TRUE(done) << "where nobody counts";
}

}  // namespace
}  // namespace gnnd::test
