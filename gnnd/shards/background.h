// SPDX-License-Identifier: MIT
#pragma once
/// \file background.h
/// Threads that do things on behalf of others.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "gnnd/shards/threads.h"

namespace gnnd::shards {

class Background {
  public:
    /// \param threads  so many jobs are done at a time, in the order in which they were started
    /// \throws Error where the system gives no more threads
    explicit Background(int threads = 1) : Background(NoThreads{}) {  // from here on the destructor runs in any case
        for (int i = 0; i < threads; ++i) threads_.start([this] { run(); });
    }
    /// Finishes the jobs that were started, unless one threw.
    ~Background() {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        changed_.notify_all();
        threads_.join();
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    /// \throws what one that was started before threw
    void start(std::function<void()> job) {
        {
            const std::lock_guard lock(mutex_);
            if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
            jobs_.push_back(std::move(job));
        }
        changed_.notify_all();
    }

    /// Until all that was started is done. \throws what it threw
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return jobs_.empty() && running_ == 0; });
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

  private:
    struct NoThreads {};
    explicit Background(NoThreads) {}

    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return !jobs_.empty() || stop_; });
            if (jobs_.empty()) return;
            std::function<void()> job = std::move(jobs_.front());
            jobs_.pop_front();
            ++running_;
            lock.unlock();
            std::exception_ptr error;
            try {
                job();
            } catch (...) {
                error = std::current_exception();
            }
            job = nullptr;  // what it holds is let go before others know that it is done
            lock.lock();
            --running_;
            if (error) {
                error_ = error;
                jobs_.clear();
            }
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::exception_ptr error_;
    int running_ = 0;
    bool stop_ = false;
    Threads threads_;  // last: they use the others
};

}  // namespace gnnd::shards
