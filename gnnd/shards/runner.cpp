// SPDX-License-Identifier: MIT
#include "gnnd/shards/runner.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "gnnd/error.h"

namespace gnnd::shards {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Task kNothing{Task::Kind::build, -1, -1};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Runner::Runner(Store& store, const BuildParams& params, const std::vector<Device>& workers, bool overlap,
               double checkpoint_seconds, const ExecutorFactory& make_executor, const ShardCallbacks& callbacks)
    : store_(store),
      overlap_(overlap),
      checkpoint_seconds_(checkpoint_seconds),
      callbacks_(callbacks),
      tasks_left_(store.manifest().count()) {
    for (const Device& device : workers) {
        auto worker = std::make_unique<Worker>();
        worker->params = params;
        worker->params.device = device;
        worker->log = WorkerLog(device);
        workers_.push_back(std::move(worker));
    }
    for (const ShardRecord& shard : store.manifest().shards) {
        built_.push_back(shard.built());
        has_local_.push_back(shard.local.has_value());
    }
    for_devices([&](const std::vector<Worker*>& sharing) {
        int waiting = int(sharing.size());
        for (Worker* worker : sharing)
            worker->executor = make_executor(store, worker->params, {int(sharing.size()), waiting--, overlap});
    });
    std::vector<Executor*> executors;
    for (const auto& worker : workers_) executors.push_back(worker->executor.get());
    for_devices([&](const std::vector<Worker*>& sharing) {
        for (Worker* worker : sharing) worker->executor->meet(executors);
    });
}

Runner::~Runner() {
    Threads threads;
    for (auto& worker : workers_) {
        try {
            threads.start([&worker] { worker.reset(); });
        } catch (const Error&) {
            worker.reset();
        }
    }
}

/// The workers of each device in a thread of its own: to get a device's memory takes long.
void Runner::for_devices(const std::function<void(const std::vector<Worker*>& sharing)>& f) {
    std::vector<std::vector<Worker*>> devices;
    for (const auto& worker : workers_) {
        const auto at = std::find_if(devices.begin(), devices.end(), [&](const std::vector<Worker*>& sharing) {
            return sharing[0]->params.device == worker->params.device;
        });
        if (at == devices.end())
            devices.push_back({worker.get()});
        else
            at->push_back(worker.get());
    }
    Threads threads;
    for (const auto& sharing : devices)
        threads.start([this, &f, &sharing] {
            try {
                f(sharing);
            } catch (...) {
                fail(std::current_exception());
            }
        });
    threads.join();
    if (error_) std::rethrow_exception(error_);
}

void Runner::run(const Schedule& schedule, bool last) {
    last_ = last;
    expect(schedule);
    if (callbacks_.progress) callbacks_.progress(progress());
    for (std::size_t round = 0; round < workers_[0]->rounds.size(); ++round) run_round(round);
    wait_for_writing();
}

void Runner::measure_rest() {
    if (store_.recall() == nullptr) return;
    Worker& worker = *workers_[0];
    const CountTraffic count(&worker.traffic);
    for (int shard = 0; shard < store_.manifest().count(); ++shard) {
        if (store_.recall()->compared_with(shard)) continue;
        Callbacks callbacks;
        callbacks.interrupt = callbacks_.interrupt;
        if (callbacks.interrupt && callbacks.interrupt()) throw Interrupted("interrupted by the caller");
        worker.executor->measure(shard, callbacks);
    }
}

void Runner::hold_merges_to(float recall) {
    for (const auto& worker : workers_) worker->executor->hold_merges_to(recall);
}

void Runner::deliver() {
    wait_for_writing();
    for (const auto& worker : workers_) worker->executor->deliver();
}

void Runner::deliver_what_can_be() noexcept {
    const auto attempt = [](const auto& step) {
        try {
            step();
        } catch (...) {
        }
    };
    for (const auto& worker : workers_) {
        attempt([&] { worker->delivering.wait(); });
        attempt([&] { worker->writing.wait(); });
        attempt([&] { worker->executor->deliver(); });
    }
    attempt([&] { store_.flush(); });
}

void Runner::wait_for_writing() {
    for (const auto& worker : workers_) {
        worker->delivering.wait();
        worker->writing.wait();
    }
}

/// One thread per worker; this one listens to the callbacks meanwhile.
void Runner::run_round(std::size_t round) {
    constexpr std::chrono::milliseconds kAskEvery(20);
    Threads threads;
    for (const auto& worker : workers_)
        if (!worker->rounds[round].empty()) start(*worker, round, threads);
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
        changed_.wait_for(lock, kAskEvery, [&] { return running_ == 0 || news_; });
        const bool news = std::exchange(news_, false);
        lock.unlock();
        try {
            if (news && callbacks_.progress) callbacks_.progress(progress());
            if (callbacks_.interrupt && callbacks_.interrupt()) throw Interrupted("interrupted by the caller");
        } catch (...) {
            fail(std::current_exception());
        }
        lock.lock();
    }
    lock.unlock();
    threads.join();
    if (error_) std::rethrow_exception(error_);
}

void Runner::start(Worker& worker, std::size_t round, Threads& threads) {
    {
        const std::lock_guard lock(mutex_);
        ++running_;
    }
    try {
        threads.start([this, &worker, round] {
            try {
                work(worker, round);
            } catch (...) {
                fail(std::current_exception());
            }
            finish(worker);
        });
    } catch (...) {  // the others stop
        fail(std::current_exception());
        finish(worker);
    }
}

/// The first error counts; those that follow come from stopping the others.
void Runner::fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_ = true;
}

void Runner::finish(Worker& worker) {
    const std::lock_guard lock(mutex_);
    worker.log.pause();
    --running_;
    changed_.notify_all();
}

Callbacks Runner::hooks() const {
    Callbacks callbacks;
    callbacks.interrupt = [this] { return stop_.load(); };
    return callbacks;
}

BuildStats Runner::compute(Worker& worker, const Task& task) {
    if (task.kind == Task::Kind::merge) return worker.executor->merge(task, hooks());
    try {
        return worker.executor->build(task.first, hooks());
    } catch (const InvalidArgument& error) {  // which may name a row
        const std::int64_t begin = store_.manifest().begin(task.first);
        if (begin == 0) throw;
        throw InvalidArgument("of the vectors from " + std::to_string(begin) + " on: " + error.what());
    }
}

void Runner::work(Worker& worker, std::size_t round) {
    const CountTraffic count(&worker.traffic);
    const std::vector<Task>& tasks = worker.rounds[round];
    Background fetching;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Task& task = tasks[i];
        if (stop_) throw Interrupted("another worker stopped");
        begin(worker, task);
        std::shared_ptr<const void> fetched = std::move(worker.ahead);
        // The first build's inputs are read alone: with the next one's beside them they would come later.
        if (overlap_ && !fetched && task.kind == Task::Kind::build) fetched = worker.executor->prepare(kNothing, task);
        if (const Task* next = task_after(worker, round, i); overlap_ && next != nullptr)
            fetching.start(counted([&, next] { worker.ahead = worker.executor->prepare(task, *next); }));
        const Clock::time_point start = Clock::now();
        const BuildStats stats = compute(worker, task);
        const double seconds = seconds_since(start);
        fetching.wait();
        fetched.reset();  // nobody may hold what is finished
        deliver_finished(worker, end(worker, task, stats, seconds));
        if (seconds_since(worker.checkpoint) >= checkpoint_seconds_) {
            worker.executor->deliver();
            worker.delivering.wait();
            worker.writing.wait();
            worker.writing.start(counted([this] { store_.flush(); }));
            if (checkpoint_seconds_ == 0 || !overlap_) worker.writing.wait();
            worker.checkpoint = Clock::now();
        }
    }
    if (!last_ || round + 1 < worker.rounds.size()) worker.executor->release();
}

/// Beside the tasks that follow, also those of later rounds: nobody uses these shards any more.
void Runner::deliver_finished(Worker& worker, const std::vector<int>& shards) {
    for (const int shard : shards)
        worker.delivering.start(counted([this, &worker, shard] {
            worker.executor->deliver(shard);
            worker.writing.start(counted([this, shard] { store_.write_lists_of(shard); }));
        }));
    if (!overlap_) worker.delivering.wait();
}

}  // namespace gnnd::shards
