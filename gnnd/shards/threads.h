// SPDX-License-Identifier: MIT
#pragma once
/// \file threads.h
/// Threads of a scope.

#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "gnnd/error.h"

namespace gnnd::shards {

/// Threads that are joined before it goes, also when an exception passes.
class Threads {
  public:
    Threads() = default;
    ~Threads() { join(); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

    /// \param job  must not throw
    /// \throws Error where the system gives no more threads
    template <class Job>
    void start(Job&& job) {
        try {
            threads_.emplace_back(std::forward<Job>(job));
        } catch (const std::system_error& error) {
            throw Error(std::string("cannot start a thread: ") + error.code().message());
        }
    }
    void join() {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

  private:
    std::vector<std::thread> threads_;
};

}  // namespace gnnd::shards
