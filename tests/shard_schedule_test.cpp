// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gnnd/error.h"
#include "gnnd/shards/schedule.h"
#include "tests/io_conditions.h"

namespace gnnd::shards {
namespace {

using Pair = std::pair<int, int>;
using Tasks = std::vector<Task>;

class ShardSchedule : public testing::TestWithParam<Pair> {
  protected:
    const int shards_ = GetParam().first, workers_ = GetParam().second;
    const Schedule schedule_ = make_schedule(shards_, workers_);
};

TEST_P(ShardSchedule, BuildsEveryShardOnceBeforeItIsMergedWithEveryOtherOnce) {
    std::multiset<int> built;
    std::multiset<Pair> merged;
    for (const auto& round : schedule_.rounds) {
        // Within a round workers run at the same time: a shard must be built by its user, or in an earlier round.
        const std::multiset<int> before = built;
        for (const Tasks& tasks : round) {
            std::multiset<int> here = before;
            for (const Task& task : tasks) {
                if (task.kind == Task::Kind::build) {
                    EXPECT_EQ(task.first, task.second);
                    here.insert(task.first);
                    built.insert(task.first);
                    continue;
                }
                EXPECT_LT(task.first, task.second);
                EXPECT_TRUE(here.contains(task.first) && here.contains(task.second));
                merged.insert({task.first, task.second});
            }
        }
    }
    EXPECT_EQ(built.size(), std::size_t(shards_));
    EXPECT_EQ(std::set<int>(built.begin(), built.end()).size(), std::size_t(shards_));
    std::multiset<Pair> all;
    for (int i = 0; i < shards_; ++i)
        for (int j = i + 1; j < shards_; ++j) all.insert({i, j});
    EXPECT_EQ(merged, all);
    EXPECT_EQ(schedule_.tasks().size(), built.size() + merged.size());
}

TEST_P(ShardSchedule, WorkersOfARoundHaveTheirShardsToThemselves) {
    for (const auto& round : schedule_.rounds) {
        ASSERT_EQ(round.size(), std::size_t(workers_));
        std::map<int, std::size_t> user;
        for (std::size_t w = 0; w < round.size(); ++w)
            for (const Task& task : round[w])
                for (const int shard : {task.first, task.second})
                    EXPECT_EQ(user.emplace(shard, w).first->second, w) << "shard " << shard;
    }
}

TEST_P(ShardSchedule, EachMergeSharesAShardWithTheOneBefore) {
    for (const auto& round : schedule_.rounds)
        for (const Tasks& tasks : round) {
            const Task* before = nullptr;
            for (std::size_t i = 0; i < tasks.size(); ++i) {
                const Task& task = tasks[i];
                if (task.kind == Task::Kind::build) {
                    // Of the builds that follow each other at most two belong to the merge after them.
                    const auto next = std::find_if(tasks.begin() + std::ptrdiff_t(i), tasks.end(),
                                                   [](const Task& t) { return t.kind == Task::Kind::merge; });
                    if (next == tasks.end())
                        EXPECT_EQ(tasks.size(), 1u);
                    else
                        EXPECT_TRUE(next->uses(task.first)) << "built too early";
                    continue;
                }
                EXPECT_TRUE(before == nullptr || task.uses(before->first) || task.uses(before->second));
                before = &task;
            }
        }
}

/// Tasks one after the other, where each round lasts as long as its longest list.
std::size_t steps(const Schedule& schedule) {
    std::size_t steps = 0;
    for (const auto& round : schedule.rounds) {
        std::size_t longest = 0;
        for (const Tasks& tasks : round) longest = std::max(longest, tasks.size());
        steps += longest;
    }
    return steps;
}

/// Of a round-robin tournament of two groups per worker alone.
std::size_t tournament_steps(int shards, int workers) {
    const int places = 2 * workers, moving = places - 1;
    std::vector<std::size_t> sizes(places);
    for (int s = 0; s < shards; ++s) ++sizes[s * places / shards];
    std::size_t steps = 0;
    for (int round = 0; round < moving; ++round) {
        std::size_t longest = 0;
        for (int w = 0; w < workers; ++w) {
            const std::size_t a = sizes[(round + w) % moving],
                              b = sizes[w == 0 ? moving : (round + moving - w) % moving];
            longest = std::max(longest, round == 0 ? (a + b) * (a + b + 1) / 2 : a * b);
        }
        steps += longest;
    }
    return steps;
}

TEST_P(ShardSchedule, WorkIsSharedEvenly) {
    EXPECT_GE(steps(schedule_) * std::size_t(workers_), schedule_.tasks().size());
    if (workers_ == 1)
        EXPECT_EQ(steps(schedule_), schedule_.tasks().size());
    else
        EXPECT_LE(steps(schedule_), tournament_steps(shards_, workers_));
}

std::vector<Pair> sizes() {
    std::vector<Pair> all;
    for (const int workers : {1, 2, 3, 4, 8})
        for (int shards = 1; shards <= 18; ++shards) all.emplace_back(shards, workers);
    for (const int workers : {2, 3, 4, 8})
        for (int shards = std::max(19, 4 * workers); shards <= 64; ++shards) all.emplace_back(shards, workers);
    all.insert(all.end(), {{100, 1}, {100, 8}, {97, 5}, {1, 64}, {5, 64}, {300, 64}});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Sizes, ShardSchedule, testing::ValuesIn(sizes()), [](const auto& info) {
    return std::to_string(info.param.first) + "Shards" + std::to_string(info.param.second) + "Workers";
});

TEST(ShardScheduleOrder, OneWorkerGoesBackAndForth) {
    using enum Task::Kind;
    EXPECT_EQ(make_schedule(1, 1).tasks(), (Tasks{{build, 0, 0}}));
    EXPECT_EQ(make_schedule(4, 1).tasks(), (Tasks{{build, 0, 0},
                                                  {build, 1, 1},
                                                  {merge, 0, 1},
                                                  {build, 2, 2},
                                                  {merge, 0, 2},
                                                  {build, 3, 3},
                                                  {merge, 0, 3},
                                                  {merge, 1, 3},
                                                  {merge, 1, 2},
                                                  {merge, 2, 3}}));
}

// Lists that are finished can be written while others are merged.
TEST(ShardScheduleOrder, ListsAreFinishedFromHalfTheWayOn) {
    for (const auto& [shards, workers] : {Pair{16, 4}, {16, 2}, {64, 8}, {48, 3}}) {
        SCOPED_TRACE(testing::Message() << shards << " shards, " << workers << " workers");
        const Schedule schedule = make_schedule(shards, workers);
        EXPECT_EQ(steps(schedule) * std::size_t(workers), schedule.tasks().size()) << "nobody waits";
        std::map<int, std::size_t> finished;  // of each shard the tasks that are done by then
        std::size_t done = 0;
        for (const auto& round : schedule.rounds) {
            for (const Tasks& tasks : round) done += tasks.size();
            for (const Tasks& tasks : round)
                for (const Task& task : tasks) finished[task.first] = finished[task.second] = done;
        }
        const auto by = [&](double part) {
            return std::count_if(finished.begin(), finished.end(), [&](const auto& entry) {
                return double(entry.second) <= part * double(schedule.tasks().size());
            });
        };
        EXPECT_EQ(by(0.4), 0);
        EXPECT_EQ(by(0.57), shards / 4);
        EXPECT_EQ(by(0.8), shards / 2);
    }
}

TEST(ShardScheduleOrder, SomeMergesKeepTheirOrderAndNeedTheirBuilds) {
    using enum Task::Kind;
    EXPECT_EQ(make_builds(4, 1).tasks(), (Tasks{{build, 0, 0}, {build, 1, 1}, {build, 2, 2}, {build, 3, 3}}));
    EXPECT_EQ(make_merges(4, 1, {{merge, 1, 2}, {merge, 1, 3}}).tasks(),
              (Tasks{{build, 1, 1}, {build, 2, 2}, {build, 3, 3}, {merge, 1, 3}, {merge, 1, 2}}));
    EXPECT_TRUE(make_merges(4, 2, {}).rounds.empty());
    for (const auto& [shards, workers] : {Pair{20, 1}, {20, 3}, {40, 8}}) {
        Tasks near;
        for (int a = 0; a < shards; ++a)
            for (int b = a + 1; b < std::min(a + 4, shards); ++b) near.push_back({merge, a, b});
        const Schedule schedule = make_merges(shards, workers, near), builds = make_builds(shards, workers);
        EXPECT_EQ(builds.tasks().size(), std::size_t(shards));
        EXPECT_EQ(schedule.tasks().size(), std::size_t(shards) + near.size());
        std::set<int> built;
        for (const auto& round : schedule.rounds) {
            ASSERT_EQ(round.size(), std::size_t(workers));
            std::map<int, std::size_t> user;
            for (std::size_t w = 0; w < round.size(); ++w)
                for (const Task& task : round[w]) {
                    for (const int shard : {task.first, task.second})
                        EXPECT_EQ(user.try_emplace(shard, w).first->second, w) << "two use a shard at a time";
                    if (task.kind == build)
                        built.insert(task.first);
                    else
                        EXPECT_TRUE(built.contains(task.first) && built.contains(task.second));
                }
        }
    }
}

/// Each shard with those that follow it, as a partition of the space numbers them.
TEST(ShardScheduleOrder, NearMergesAreSharedByAllWorkers) {
    for (const auto& [shards, workers] : {Pair{19, 2}, {40, 8}, {512, 64}}) {
        SCOPED_TRACE(testing::Message() << shards << " shards, " << workers << " workers");
        Tasks near;
        for (int apart = 1; apart <= 3; ++apart)
            for (int a = 0; a + apart < shards; ++a) near.push_back({Task::Kind::merge, a, a + apart});
        const Schedule schedule = make_merges(shards, workers, near);
        std::size_t longest = 0;  // merges one after the other, where the others wait at the end of a round
        for (const auto& round : schedule.rounds) {
            std::size_t most = 0;
            for (const auto& tasks : round)
                most = std::max(most, std::size_t(std::count_if(tasks.begin(), tasks.end(), [](const Task& task) {
                                    return task.kind == Task::Kind::merge;
                                })));
            longest += most;
        }
        EXPECT_LE(longest, 2 * near.size() / std::size_t(workers) + 4);
    }
}

TEST(ShardScheduleOrder, RefusesWhatMakesNoSense) {
    for (const auto& [shards, workers] : {Pair{0, 1}, {1025, 1}, {1, 0}, {1, 65}})
        EXPECT_THROW(make_schedule(shards, workers), InvalidArgument);
    EXPECT_EQ(test::message_of<InvalidArgument>([] { make_schedule(0, 1); }),
              "make_schedule::shards = 0, allowed are 1 to 1024");
}

}  // namespace
}  // namespace gnnd::shards
