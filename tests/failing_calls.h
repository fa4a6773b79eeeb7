// SPDX-License-Identifier: MIT
#pragma once
/// \file failing_calls.h
/// Calls of the system that fail for the length of a scope, from some moment on. One scope at a time.

namespace gnnd::test {

/// The system gives so many threads more and then none, but OpenMP's, which ends the process without.
class FailingThreads {
  public:
    explicit FailingThreads(int allowed);
    ~FailingThreads();
    FailingThreads(const FailingThreads&) = delete;
    FailingThreads& operator=(const FailingThreads&) = delete;

    bool has_failed() const;
    /// Not under the sanitizers, which replace these calls themselves.
    static bool possible();
};

/// After so many flushes of folders all that follow find the disk broken.
class FailingFolderFlush {
  public:
    explicit FailingFolderFlush(int allowed);
    ~FailingFolderFlush();
    FailingFolderFlush(const FailingFolderFlush&) = delete;
    FailingFolderFlush& operator=(const FailingFolderFlush&) = delete;

    bool has_failed() const;
    static bool possible() { return FailingThreads::possible(); }
};

}  // namespace gnnd::test
