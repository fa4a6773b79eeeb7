// SPDX-License-Identifier: MIT
#include "gnnd/shards/schedule.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "gnnd/detail/checks.h"

namespace gnnd::shards {
namespace {

using Shards = std::vector<int>;

/// Puts tasks into a worker's list, builds where they are due.
class TaskLists {
  public:
    explicit TaskLists(int shards) : built_(shards, false) {}

    void build(std::vector<Task>& tasks, int shard) {
        if (built_[shard]) return;
        built_[shard] = true;
        tasks.push_back({Task::Kind::build, shard, shard});
    }
    void merge(std::vector<Task>& tasks, int a, int b) {
        build(tasks, a);
        build(tasks, b);
        tasks.push_back({Task::Kind::merge, std::min(a, b), std::max(a, b)});
    }

    /// All pairs of these: (0,1) (0,2) .. (0,N-1) (1,N-1) (1,N-2) .. (1,2) (2,3) ..
    void snake(std::vector<Task>& tasks, const Shards& shards) {
        const int n = int(shards.size());
        for (int i = 0; i < n; ++i)
            for (int step = 1; step < n - i; ++step) merge(tasks, shards[i], shards[i % 2 == 0 ? i + step : n - step]);
        for (const int shard : shards) build(tasks, shard);  // where there is but one
    }

    /// All pairs of one of a with one of b: b forwards, then backwards, and so on.
    void cross(std::vector<Task>& tasks, const Shards& a, const Shards& b) {
        const std::size_t n = b.size();
        for (std::size_t i = 0; i < a.size(); ++i)
            for (std::size_t j = 0; j < n; ++j) merge(tasks, a[i], b[i % 2 == 0 ? j : n - 1 - j]);
    }

  private:
    std::vector<bool> built_;
};

/// In `count` groups whose sizes differ by one at most.
std::vector<Shards> make_groups(const Shards& shards, int count) {
    std::vector<Shards> groups(count);
    for (std::size_t i = 0; i < shards.size(); ++i) groups[i * std::size_t(count) / shards.size()].push_back(shards[i]);
    return groups;
}

/// Rounds of several workers.
class Rounds {
  public:
    Rounds(int shards, int workers, Schedule& schedule) : lists_(shards), workers_(workers), schedule_(schedule) {}

    /// All pairs of these, by the circle method: the last of the groups stays, the others move on by one place after
    /// each round; those that face each other meet.
    void tournament(const Shards& shards) {
        const int places = 2 * workers_, moving = places - 1;
        const std::vector<Shards> groups = make_groups(shards, places);
        for (int round = 0; round < moving; ++round) {
            auto& lists = schedule_.rounds.emplace_back(workers_);
            for (int w = 0; w < workers_; ++w) {
                const Shards& a = groups[(round + w) % moving];
                const Shards& b = groups[w == 0 ? moving : (round + moving - w) % moving];
                if (round == 0) {
                    Shards both = a;
                    both.insert(both.end(), b.begin(), b.end());
                    lists_.snake(lists[w], both);
                } else {
                    lists_.cross(lists[w], a, b);
                }
            }
        }
    }

    /// All pairs of one of a with one of b: each worker has a group of a to itself, and those of b in turn.
    void cross(const Shards& a, const Shards& b) {
        const std::vector<Shards> kept = make_groups(a, workers_), passed = make_groups(b, workers_);
        for (int round = 0; round < workers_; ++round) {
            auto& lists = schedule_.rounds.emplace_back(workers_);
            for (int w = 0; w < workers_; ++w) lists_.cross(lists[w], kept[w], passed[(round + w) % workers_]);
        }
    }

  private:
    TaskLists lists_;
    const int workers_;
    Schedule& schedule_;
};

}  // namespace

std::vector<Task> Schedule::tasks() const {
    std::vector<Task> all;
    for (const auto& round : rounds)
        for (const auto& worker : round) all.insert(all.end(), worker.begin(), worker.end());
    return all;
}

Schedule make_schedule(int shards, int workers) {
    detail::check_range("make_schedule", "shards", shards, 1, kMaxShards);
    detail::check_range("make_schedule", "workers", workers, 1, kMaxWorkers);
    Schedule schedule;
    Shards left(shards);
    std::iota(left.begin(), left.end(), 0);
    if (workers == 1) {
        TaskLists(shards).snake(schedule.rounds.emplace_back(1)[0], left);
        return schedule;
    }
    Rounds rounds(shards, workers, schedule);
    for (const int groups = 2 * workers; int(left.size()) >= 2 * groups;) {
        // As many that all groups of a tournament are of the same size: nobody waits.
        const auto half = left.begin() + int(left.size()) / (2 * groups) * groups;
        const Shards first(left.begin(), half);
        left.erase(left.begin(), half);
        rounds.tournament(first);
        for (const Shards& part : make_groups(first, 2)) rounds.cross(part, left);
    }
    rounds.tournament(left);
    return schedule;
}

namespace {

/// The tasks for which keep(task) holds. Rounds without any are left out.
template <class Keep>
Schedule filtered(const Schedule& all, const Keep& keep) {
    Schedule schedule;
    for (const auto& round : all.rounds) {
        auto kept = round;
        bool any = false;
        for (auto& tasks : kept) {
            std::erase_if(tasks, [&](const Task& task) { return !keep(task); });
            any |= !tasks.empty();
        }
        if (any) schedule.rounds.push_back(std::move(kept));
    }
    return schedule;
}

}  // namespace

Schedule make_builds(int shards, int workers) {
    return filtered(make_schedule(shards, workers), [](const Task& task) { return task.kind == Task::Kind::build; });
}

Schedule make_merges(int shards, int workers, const std::vector<Task>& merges) {
    const auto count = std::size_t(shards);
    if (workers == 1) {
        std::vector<char> merged(count), chosen(count * count);
        for (const Task& merge : merges) {
            merged[std::size_t(merge.first)] = merged[std::size_t(merge.second)] = 1;
            chosen[std::size_t(merge.first) * count + std::size_t(merge.second)] = 1;
        }
        return filtered(make_schedule(shards, workers), [&](const Task& task) {
            if (task.kind == Task::Kind::build) return merged[std::size_t(task.first)] != 0;
            return chosen[std::size_t(task.first) * count + std::size_t(task.second)] != 0;
        });
    }
    detail::check_range("make_merges", "workers", workers, 1, kMaxWorkers);
    Schedule schedule;
    TaskLists lists(shards);
    std::vector<Task> left = merges;
    std::sort(left.begin(), left.end(),
              [](const Task& a, const Task& b) { return std::pair(a.first, a.second) < std::pair(b.first, b.second); });
    while (!left.empty()) {
        const std::size_t most = (left.size() + std::size_t(workers) - 1) / std::size_t(workers);
        std::vector<std::size_t> load(std::size_t(workers), 0);
        std::vector<int> owner(count, -1);
        std::vector<Task> later;
        auto& round = schedule.rounds.emplace_back(workers);
        for (const Task& merge : left) {
            int &first = owner[std::size_t(merge.first)], &second = owner[std::size_t(merge.second)];
            int worker = std::max(first, second);
            if (worker < 0) worker = int(std::min_element(load.begin(), load.end()) - load.begin());
            const bool free = (first < 0 || first == worker) && (second < 0 || second == worker);
            if (!free || load[std::size_t(worker)] == most) {
                later.push_back(merge);
                continue;
            }
            first = second = worker;
            ++load[std::size_t(worker)];
            lists.merge(round[std::size_t(worker)], merge.first, merge.second);
        }
        left = std::move(later);
    }
    return schedule;
}

}  // namespace gnnd::shards
