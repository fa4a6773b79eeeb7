// SPDX-License-Identifier: MIT
#pragma once
/// \file folder_lock.h
/// One process at a time in a folder.

#include <string>

namespace gnnd::shards {

/// The file that is locked, beside those of the graph.
inline constexpr const char* kLockName = "lock";

/// Keeps other processes out of a folder as long as it lives. What a killed process leaves behind locks nothing.
class FolderLock {
  public:
    /// \throws IoError: another process holds it (its id is told), or the file cannot be created
    explicit FolderLock(const std::string& folder);
    ~FolderLock();
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

  private:
    int descriptor_;
};

}  // namespace gnnd::shards
