// SPDX-License-Identifier: MIT
#pragma once
/// \file runner.h
/// Carries a schedule out: one thread per worker, and for each some more, which fetch what the next task needs, deliver
/// what is finished and write what is finished or due, while tasks are computed.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gnnd/sharded.h"
#include "gnnd/shards/background.h"
#include "gnnd/shards/executor.h"
#include "gnnd/shards/store.h"
#include "gnnd/shards/worker_log.h"

namespace gnnd::shards {

class Runner {
  public:
    /// \param workers  devices, one each
    /// \param overlap  whether fetching and folding go on beside merges, which takes HostBudget::overlapped
    Runner(Store& store, const BuildParams& params, const std::vector<Device>& workers, bool overlap,
           double checkpoint_seconds, const ExecutorFactory& make_executor, const ShardCallbacks& callbacks);

    /// Ends all workers at the same time, which takes long.
    ~Runner();
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    /// All tasks that are not done: merges that no earlier run has done, builds of shards that were not built, or whose
    /// local graph a merge needs and nobody has. What any thread throws ends all of them and is thrown here, as is
    /// Interrupted.
    /// \param last  no schedule follows: shards are written as soon as none of these tasks needs them
    void run(const Schedule& schedule, bool last);
    /// Holds merges from now on to this recall instead of that of the parameters.
    void hold_merges_to(float recall);
    /// Compares the recall's sample with the shards that no task has used. They are read for it.
    void measure_rest();
    /// After run(): what was done until then is in the store.
    void deliver();
    /// After run() failed: the same, and durable, as far as that is possible. What goes wrong now is not told.
    void deliver_what_can_be() noexcept;

    ShardProgress progress() const;
    std::uint64_t peak_work_bytes() const { return peak_work_bytes_; }

  private:
    /// Lists that a worker delivers at a time, and files that it writes: the system lets one thread at a time copy to a
    /// file, which disks outrun.
    static constexpr int kWriters = 2;

    struct Worker {
        std::unique_ptr<Executor> executor;
        BuildParams params;
        Traffic traffic;
        std::vector<std::vector<Task>> rounds;  ///< what is not done yet
        WorkerLog log{Device{}};
        std::chrono::steady_clock::time_point checkpoint = std::chrono::steady_clock::now();
        std::shared_ptr<const void> ahead;  ///< what the next task needs
        Background writing{kWriters};
        Background delivering{kWriters};  ///< last: it uses the others
    };

    void for_devices(const std::function<void(const std::vector<Worker*>& sharing)>& f);
    void wait_for_writing();
    void expect(const Schedule& schedule);
    void run_round(std::size_t round);
    void start(Worker& worker, std::size_t round, Threads& threads);
    void work(Worker& worker, std::size_t round);
    static const Task* task_after(const Worker& worker, std::size_t round, std::size_t task);
    BuildStats compute(Worker& worker, const Task& task);
    void begin(Worker& worker, const Task& task);
    std::vector<int> end(Worker& worker, const Task& task, const BuildStats& stats, double seconds);
    void deliver_finished(Worker& worker, const std::vector<int>& shards);
    void finish(Worker& worker);
    void fail(std::exception_ptr error);
    Callbacks hooks() const;

    Store& store_;
    const bool overlap_;
    const double checkpoint_seconds_;
    const ShardCallbacks& callbacks_;
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<Worker>> workers_;
    bool last_ = false;  ///< of run()

    mutable std::mutex mutex_;             ///< of what follows and the workers' logs
    int tasks_ = 0, tasks_done_ = 0;       ///< of all schedules so far
    std::vector<int> tasks_left_;          ///< of each shard
    std::vector<char> built_, has_local_;  ///< of each shard: whether somebody has its lists, its local graph
    std::condition_variable changed_;
    int running_ = 0;
    bool news_ = false;
    std::exception_ptr error_;
    std::uint64_t peak_work_bytes_ = 0;
    std::atomic<bool> stop_{false};
};

}  // namespace gnnd::shards
