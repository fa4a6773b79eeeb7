// SPDX-License-Identifier: MIT
#pragma once
/// \file worker_log.h
/// The tasks that a worker has done and is to do, and how long the rest will take.

#include <vector>

#include "gnnd/sharded.h"
#include "gnnd/shards/schedule.h"

namespace gnnd::shards {

class WorkerLog {
  public:
    explicit WorkerLog(const Device& device) { progress_.device = device; }

    void expect(const Task& task);  ///< one more to do
    void begin(const Task& task);
    void end(const Task& task, double seconds);
    void pause() { progress_.task.clear(); }  ///< nothing to do for now

    /// Without the bytes that it moved.
    const WorkerProgress& progress() const { return progress_; }

  private:
    friend double seconds_left(const std::vector<const WorkerLog*>& workers);
    WorkerProgress progress_;
    int builds_done_ = 0, merges_done_ = 0, builds_left_ = 0, merges_left_ = 0;
};

/// Estimated from the tasks that were done so far; a merge counts as a build until one is done. Negative where none is.
double seconds_left(const std::vector<const WorkerLog*>& workers);

}  // namespace gnnd::shards
