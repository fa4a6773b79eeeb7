// SPDX-License-Identifier: MIT
// The tasks of a Runner: the ones that are left, the ones that are done, and when the rest will be.
#include <algorithm>
#include <chrono>
#include <set>

#include "gnnd/shards/runner.h"

namespace gnnd::shards {

/// Gives the tasks that are not done to the workers.
void Runner::expect(const Schedule& schedule) {
    const std::lock_guard lock(mutex_);
    std::vector<char> needs_local(built_.size());
    for (const Task& task : schedule.tasks())
        if (task.kind == Task::Kind::merge && !store_.merged(task))
            needs_local[std::size_t(task.first)] = needs_local[std::size_t(task.second)] = 1;
    const auto is_done = [&](const Task& task) {
        if (task.kind == Task::Kind::merge) return store_.merged(task);
        const auto shard = std::size_t(task.first);
        return built_[shard] != 0 && (has_local_[shard] != 0 || needs_local[shard] == 0);
    };
    const bool counts_builds = tasks_ == 0;  // those of later schedules are among the first one's
    for (const auto& worker : workers_) worker->rounds.clear();
    for (const auto& round : schedule.rounds)
        for (std::size_t w = 0; w < round.size(); ++w) {
            Worker& worker = *workers_[w];
            std::vector<Task>& tasks = worker.rounds.emplace_back();
            for (const Task& task : round[w]) {
                const bool done = is_done(task);
                if (done && task.kind == Task::Kind::build && !counts_builds) continue;
                ++tasks_;
                if (done) {
                    ++tasks_done_;
                    continue;
                }
                tasks.push_back(task);
                worker.log.expect(task);
                for (const int shard : std::set{task.first, task.second}) ++tasks_left_[shard];
            }
        }
}

/// The task whose inputs can be fetched while that one runs: the next of the round, or a build at the start of the
/// following one.
const Task* Runner::task_after(const Worker& worker, std::size_t round, std::size_t task) {
    if (task + 1 < worker.rounds[round].size()) return &worker.rounds[round][task + 1];
    if (round + 1 == worker.rounds.size() || worker.rounds[round + 1].empty()) return nullptr;
    const Task& next = worker.rounds[round + 1][0];
    return next.kind == Task::Kind::build ? &next : nullptr;
}

void Runner::begin(Worker& worker, const Task& task) {
    const std::lock_guard lock(mutex_);
    worker.log.begin(task);
}

/// \return the task's shards that no task uses any more, of no schedule
std::vector<int> Runner::end(Worker& worker, const Task& task, const BuildStats& stats, double seconds) {
    const std::lock_guard lock(mutex_);
    peak_work_bytes_ = std::max(peak_work_bytes_, std::uint64_t(stats.peak_work_bytes));
    store_.note_samples(stats.choices.samples);
    worker.log.end(task, seconds);
    ++tasks_done_;
    news_ = true;
    changed_.notify_all();
    if (task.kind == Task::Kind::build) built_[std::size_t(task.first)] = has_local_[std::size_t(task.first)] = 1;
    std::vector<int> finished;
    for (const int shard : std::set{task.first, task.second})
        if (--tasks_left_[shard] == 0 && last_) finished.push_back(shard);
    return finished;
}

ShardProgress Runner::progress() const {
    const std::lock_guard lock(mutex_);
    ShardProgress progress;
    progress.tasks = tasks_;
    progress.tasks_done = tasks_done_;
    progress.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    progress.host_bytes = store_.host_bytes();
    std::vector<const WorkerLog*> logs;
    for (const auto& worker : workers_) {
        logs.push_back(&worker->log);
        WorkerProgress& own = progress.workers.emplace_back(worker->log.progress());
        own.bytes_read = worker->traffic.read;
        own.bytes_written = worker->traffic.written;
        progress.bytes_read += own.bytes_read;
        progress.bytes_written += own.bytes_written;
    }
    progress.seconds_left = seconds_left(logs);
    return progress;
}

}  // namespace gnnd::shards
