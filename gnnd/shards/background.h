#pragma once
/// \file background.h
/// A thread that does one thing at a time on behalf of another.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace gnnd::shards {

class Background {
  public:
    Background() : thread_([this] { run(); }) {}
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
        wait();
        {
            const std::lock_guard lock(mutex_);
            job_ = std::move(job);
        }
        changed_.notify_all();
    }

    /// Until what was started is done. \throws what it threw
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !job_; });
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

  private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return job_ || stop_; });
            if (!job_) return;
            lock.unlock();
            std::exception_ptr error;
            try {
                job_();
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            job_ = nullptr;
            error_ = error;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> job_;
    std::exception_ptr error_;
    bool stop_ = false;
    std::thread thread_;  // last: it uses the others
};

}  // namespace gnnd::shards
