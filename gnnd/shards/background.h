#pragma once
/// \file background.h
/// A thread that does things, one after the other, on behalf of others.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace gnnd::shards {

class Background {
  public:
    Background() : thread_([this] { run(); }) {}
    /// What was started is done first, unless something threw.
    ~Background() {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    /// After what was started before. \throws what that threw
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
        changed_.wait(lock, [&] { return jobs_.empty(); });
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

  private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return !jobs_.empty() || stop_; });
            if (jobs_.empty()) return;
            const std::function<void()> job = std::move(jobs_.front());  // it stays first while it is done
            lock.unlock();
            std::exception_ptr error;
            try {
                job();
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            jobs_.pop_front();
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
    bool stop_ = false;
    std::thread thread_;  // last: it uses the others
};

}  // namespace gnnd::shards
