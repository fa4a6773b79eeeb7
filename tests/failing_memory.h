// SPDX-License-Identifier: MIT
#pragma once
/// \file failing_memory.h
/// Memory that runs out for the length of a scope, from some moment on. One scope at a time.

#include <cstddef>

namespace gnnd::test {

/// This thread gets `from_bytes` or more of memory from `new` so many times more and then never. Smaller pieces it
/// gets, and other threads get what they ask for.
class FailingMemory {
  public:
    explicit FailingMemory(int allowed, std::size_t from_bytes = 0);
    ~FailingMemory();
    FailingMemory(const FailingMemory&) = delete;
    FailingMemory& operator=(const FailingMemory&) = delete;

    bool has_failed() const;
    /// Not under the sanitizers, which replace `new` themselves.
    static bool possible();
};

}  // namespace gnnd::test
