#include "gnnd/shards/runner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gnnd/error.h"

namespace gnnd::shards {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string name_of(const Task& task) {
    if (task.kind == Task::Kind::build) return "build " + std::to_string(task.first);
    return "merge " + std::to_string(task.first) + " " + std::to_string(task.second);
}

}  // namespace

Runner::Runner(Store& store, const Plan& plan, const BuildParams& params, const std::vector<Device>& workers,
               bool overlap, const ExecutorFactory& make_executor, const ShardCallbacks& callbacks)
    : store_(store), overlap_(overlap), callbacks_(callbacks) {
    for (const Device& device : workers) {
        auto worker = std::make_unique<Worker>();
        worker->params = params;
        worker->params.device = worker->progress.device = device;
        const Manifest& manifest = store.manifest();
        worker->executor = make_executor(worker->params, {manifest.most_rows(), manifest.base.d, manifest.base.dtype,
                                                          manifest.local_columns(), manifest.count() > 1});
        workers_.push_back(std::move(worker));
    }
    for (const auto& round : plan.rounds)
        for (std::size_t w = 0; w < round.size(); ++w) {
            Worker& worker = *workers_[w];
            std::vector<Task>& tasks = worker.rounds.emplace_back();
            for (const Task& task : round[w]) {
                ++tasks_;
                if (store.done(task)) {
                    ++tasks_done_;
                    continue;
                }
                tasks.push_back(task);
                ++(task.kind == Task::Kind::build ? worker.builds_left : worker.merges_left);
                ++worker.progress.left;
            }
        }
}

void Runner::run() {
    if (callbacks_.progress) callbacks_.progress(progress());
    for (std::size_t round = 0; round < workers_[0]->rounds.size(); ++round) run_round(round);
}

/// One thread per worker; this one listens to the callbacks meanwhile.
void Runner::run_round(std::size_t round) {
    constexpr std::chrono::milliseconds kAskEvery(20);
    std::vector<std::thread> threads;
    std::unique_lock lock(mutex_);
    for (const auto& worker : workers_) {
        if (worker->rounds[round].empty()) continue;
        ++running_;
        threads.emplace_back([this, &worker = *worker, round] {
            try {
                work(worker, worker.rounds[round]);
            } catch (...) {
                fail(std::current_exception());
            }
            finish(worker);
        });
    }
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
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
}

/// The first error counts; those that follow come from stopping the others.
void Runner::fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_ = true;
}

void Runner::finish(Worker& worker) {
    const std::lock_guard lock(mutex_);
    worker.progress.task.clear();
    --running_;
    changed_.notify_all();
}

Callbacks Runner::hooks() const {
    Callbacks callbacks;
    callbacks.interrupt = [this] { return stop_.load(); };
    return callbacks;
}

/// What tasks read, pinned.
struct Runner::Inputs {
    std::vector<PinnedVectors> vectors;
    std::vector<PinnedGraph> locals;  ///< none for a build
};

Runner::Inputs Runner::inputs_of(const Task& task) const {
    Inputs inputs;
    inputs.vectors.push_back(store_.vectors(task.first));
    if (task.kind == Task::Kind::build) return inputs;
    inputs.vectors.push_back(store_.vectors(task.second));
    for (const int shard : {task.first, task.second}) inputs.locals.push_back(store_.local(shard));
    return inputs;
}

/// The shard of the next task that the present one does not use: one at most, for more there may be no room. It has a
/// local graph if it is to be merged, since builds stand directly before the merge that needs them.
Runner::Inputs Runner::inputs_ahead(const Task& task, const Task& next) const {
    Inputs inputs;
    for (const int shard : {next.first, next.second}) {
        if (task.uses(shard)) continue;
        inputs.vectors.push_back(store_.vectors(shard));
        if (next.kind == Task::Kind::merge) inputs.locals.push_back(store_.local(shard));
        break;
    }
    return inputs;
}

void Runner::work(Worker& worker, const std::vector<Task>& tasks) {
    const CountTraffic count(worker.traffic);
    Inputs ahead;  // outlives the thread that fills it
    Background reading, writing, folding;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Task& task = tasks[i];
        if (stop_) throw Interrupted("another worker stopped");
        begin(worker, task);
        reading.wait();
        const Inputs inputs = inputs_of(task);
        ahead = {};
        if (overlap_ && i + 1 < tasks.size())
            reading.start([this, &worker, &ahead, &task, &next = tasks[i + 1]] {
                const CountTraffic count_here(worker.traffic);
                ahead = inputs_ahead(task, next);
                if (task.kind != Task::Kind::merge || next.kind != Task::Kind::merge || ahead.vectors.empty()) return;
                const Side side{task.uses(next.first) ? next.second : next.first, ahead.vectors[0].view,
                                ahead.locals[0].view()};
                worker.executor->prepare(side, [&task](int shard) { return task.uses(shard); });
            });
        if (task.kind == Task::Kind::build)
            run_build(worker, task, inputs, folding);
        else
            run_merge(worker, task, inputs, folding, writing);
    }
    folding.wait();
    writing.wait();
}

void Runner::run_build(Worker& worker, const Task& task, const Inputs& inputs, Background& folding) {
    const Clock::time_point start = Clock::now();
    BuildStats stats;
    {
        const PinnedGraph built = store_.new_graph(task.first);
        if (built.n == 1) {  // which build() refuses
            std::fill_n(built.ids(), built.k, -1);
            std::fill_n(built.distances(), built.k, worst_value(built.metric));
        } else {
            stats = worker.executor->build(task.first, inputs.vectors[0].view, built.ids(), built.distances(), hooks());
        }
        store_.split_build(task.first, built);
    }
    note(worker, task, stats, seconds_since(start));
    in_background(worker, folding, [this] { store_.checkpoint_if_due(); });
}

void Runner::run_merge(Worker& worker, const Task& task, const Inputs& inputs, Background& folding,
                       Background& writing) {
    const Clock::time_point start = Clock::now();
    const auto side = [&](int which, int shard) {
        return Side{shard, inputs.vectors[which].view, inputs.locals[which].view()};
    };
    auto result = std::make_shared<PinnedGraph>(store_.scratch(store_.rows(task.first) + store_.rows(task.second)));
    std::function<void()> fetch;
    const BuildStats stats = worker.executor->merge(side(0, task.first), side(1, task.second), result->ids(),
                                                    result->distances(), hooks(), fetch);
    note(worker, task, stats, seconds_since(start));
    in_background(worker, folding,
                  [this, &worker, &writing, &task, fetch = std::move(fetch), result = std::move(result)]() mutable {
                      fetch();
                      store_.fold_pair(task, result->view());
                      result.reset();
                      store_.checkpoint_if_due();
                      if (std::vector<int> finished = store_.finished_by(task); !finished.empty())
                          writing.start([this, &worker, finished = std::move(finished)] {
                              const CountTraffic count_here(worker.traffic);
                              store_.write_lists_of(finished);
                          });
                  });
}

/// What ends a task, while the next one begins.
void Runner::in_background(Worker& worker, Background& folding, std::function<void()> job) {
    folding.start([this, &worker, job = std::move(job)] {
        const CountTraffic count(worker.traffic);
        job();
        end(worker);
    });
    if (!overlap_) folding.wait();
}

void Runner::begin(Worker& worker, const Task& task) {
    const std::lock_guard lock(mutex_);
    worker.progress.task = name_of(task);
}

void Runner::note(Worker& worker, const Task& task, const BuildStats& stats, double seconds) {
    const std::lock_guard lock(mutex_);
    peak_work_bytes_ = std::max(peak_work_bytes_, std::uint64_t(stats.peak_work_bytes));
    worker.progress.seconds += seconds;
    const bool build = task.kind == Task::Kind::build;
    ++(build ? worker.builds_done : worker.merges_done);
    --(build ? worker.builds_left : worker.merges_left);
    (build ? worker.build_seconds : worker.merge_seconds) += seconds;
}

void Runner::end(Worker& worker) {
    const std::lock_guard lock(mutex_);
    ++worker.progress.done;
    --worker.progress.left;
    ++tasks_done_;
    news_ = true;
    changed_.notify_all();
}

/// From what tasks took so far; a merge that nobody has seen yet counts as a build.
double Runner::seconds_left() const {
    double build = 0, merge = 0, longest = 0;
    int builds = 0, merges = 0;
    for (const auto& worker : workers_) {
        build += worker->build_seconds;
        merge += worker->merge_seconds;
        builds += worker->builds_done;
        merges += worker->merges_done;
    }
    if (builds + merges == 0) return -1;
    const double per_build = builds > 0 ? build / builds : merge / merges;
    const double per_merge = merges > 0 ? merge / merges : build / builds;
    for (const auto& worker : workers_)
        longest = std::max(longest, worker->builds_left * per_build + worker->merges_left * per_merge);
    return longest;
}

ShardProgress Runner::progress() const {
    const std::lock_guard lock(mutex_);
    ShardProgress progress;
    progress.tasks = tasks_;
    progress.tasks_done = tasks_done_;
    progress.seconds = seconds_since(started_);
    progress.seconds_left = seconds_left();
    progress.host_bytes = store_.host_bytes();
    for (const auto& worker : workers_) {
        WorkerProgress& own = progress.workers.emplace_back(worker->progress);
        own.bytes_read = worker->traffic.read;
        own.bytes_written = worker->traffic.written;
        progress.bytes_read += own.bytes_read;
        progress.bytes_written += own.bytes_written;
    }
    return progress;
}

}  // namespace gnnd::shards
