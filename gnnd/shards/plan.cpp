#include "gnnd/shards/plan.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>

#include "gnnd/detail/checks.h"

namespace gnnd::shards {
namespace {

using Shards = std::vector<int>;

/// Puts tasks into a worker's list, builds where they are due.
class Schedule {
  public:
    explicit Schedule(int shards) : built_(shards, false) {}

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

/// Shards in `count` groups whose sizes differ by one at most.
std::vector<Shards> make_groups(int shards, int count) {
    std::vector<Shards> groups(count);
    for (int s = 0; s < shards; ++s) groups[std::size_t(std::int64_t(s) * count / shards)].push_back(s);
    return groups;
}

}  // namespace

std::vector<Task> Plan::tasks() const {
    std::vector<Task> all;
    for (const auto& round : rounds)
        for (const auto& worker : round) all.insert(all.end(), worker.begin(), worker.end());
    return all;
}

int Plan::most_shards() const {
    std::size_t most = 0;
    for (const auto& round : rounds)
        for (const auto& worker : round) {
            std::set<int> used;
            for (const Task& task : worker) used.insert({task.first, task.second});
            most = std::max(most, used.size());
        }
    return int(most);
}

Plan make_plan(int shards, int workers) {
    detail::check_range("make_plan", "shards", shards, 1, kMaxShards);
    detail::check_range("make_plan", "workers", workers, 1, kMaxWorkers);
    Schedule schedule(shards);
    Plan plan;
    if (workers == 1) {
        Shards all(shards);
        std::iota(all.begin(), all.end(), 0);
        schedule.snake(plan.rounds.emplace_back(1)[0], all);
        return plan;
    }
    // The circle method: the last group stays, the others move on by one place after each round; those that face each
    // other meet.
    const int places = 2 * workers;
    const std::vector<Shards> groups = make_groups(shards, places);
    for (int round = 0; round < places - 1; ++round) {
        auto& lists = plan.rounds.emplace_back(workers);
        for (int w = 0; w < workers; ++w) {
            const int moving = places - 1;
            const Shards& a = groups[(round + w) % moving];
            const Shards& b = groups[w == 0 ? moving : (round + moving - w) % moving];
            if (round == 0) {
                Shards both = a;
                both.insert(both.end(), b.begin(), b.end());
                schedule.snake(lists[w], both);
            } else {
                schedule.cross(lists[w], a, b);
            }
        }
    }
    return plan;
}

}  // namespace gnnd::shards
