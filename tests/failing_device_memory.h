// SPDX-License-Identifier: MIT
#pragma once
/// \file failing_device_memory.h
/// GPUs that have no more memory for the length of a scope, from some moment on. One scope at a time.

#include <climits>

namespace gnnd::test {

/// All threads get memory of a GPU, and page-locked memory, so many times more and then none. Whoever uses this links
/// with --wrap, as tests/CMakeLists.txt does.
class FailingDeviceMemory {
  public:
    /// \param failures  of so many calls; those behind them get what they ask for again
    explicit FailingDeviceMemory(int allowed, int failures = INT_MAX);
    ~FailingDeviceMemory();
    FailingDeviceMemory(const FailingDeviceMemory&) = delete;
    FailingDeviceMemory& operator=(const FailingDeviceMemory&) = delete;

    bool has_failed() const;
};

/// One call alone, as where another program held the memory for a moment.
struct FailingOnce : FailingDeviceMemory {
    explicit FailingOnce(int allowed) : FailingDeviceMemory(allowed, 1) {}
};

}  // namespace gnnd::test
