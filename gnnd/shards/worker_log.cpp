// SPDX-License-Identifier: MIT
#include "gnnd/shards/worker_log.h"

#include <algorithm>
#include <string>

namespace gnnd::shards {
namespace {

std::string name_of(const Task& task) {
    if (task.kind == Task::Kind::build) return "build " + std::to_string(task.first);
    return "merge " + std::to_string(task.first) + " " + std::to_string(task.second);
}

}  // namespace

void WorkerLog::expect(const Task& task) {
    ++(task.kind == Task::Kind::build ? builds_left_ : merges_left_);
    ++progress_.left;
}

void WorkerLog::begin(const Task& task) {
    progress_.task = name_of(task);
}

void WorkerLog::end(const Task& task, double seconds) {
    const bool build = task.kind == Task::Kind::build;
    ++(build ? builds_done_ : merges_done_);
    --(build ? builds_left_ : merges_left_);
    (build ? progress_.build_seconds : progress_.merge_seconds) += seconds;
    ++progress_.done;
    --progress_.left;
}

double seconds_left(const std::vector<const WorkerLog*>& workers) {
    double build = 0, merge = 0, longest = 0;
    int builds = 0, merges = 0;
    for (const WorkerLog* worker : workers) {
        build += worker->progress_.build_seconds;
        merge += worker->progress_.merge_seconds;
        builds += worker->builds_done_;
        merges += worker->merges_done_;
    }
    if (builds + merges == 0) return -1;
    const double per_build = builds > 0 ? build / builds : merge / merges;
    const double per_merge = merges > 0 ? merge / merges : build / builds;
    for (const WorkerLog* worker : workers)
        longest = std::max(longest, worker->builds_left_ * per_build + worker->merges_left_ * per_merge);
    return longest;
}

}  // namespace gnnd::shards
