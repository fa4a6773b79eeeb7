// SPDX-License-Identifier: MIT
#pragma once
/// \file atomic_file.h
/// Writing a file so that it is either the old or the new one, whole, whatever happens.

#include <cstddef>
#include <cstdint>
#include <string>

#include "gnnd/error.h"

namespace gnnd::io::detail {

/// The new file is in place, but it is not known whether it survives a power cut: its folder could not be flushed.
class NotDurable : public IoError {
  public:
    using IoError::IoError;
};

/// Writes to a temporary name beside the target; commit() flushes it to disk, renames it over the target and flushes
/// the folder. Without commit(), and when anything fails, the temporary file is removed and the target stays as it
/// was; only a killed process leaves NAME.tmp.PID.NUMBER behind, which the next file of that name removes: the writer
/// of a temporary file has it locked (flock) as long as it lives, so that those of the dead are known. Symbolic links
/// are followed, so that the file they point to is replaced. An existing file keeps its permissions, a new one gets
/// those of the umask.
class AtomicFile {
  public:
    /// \throws IoError when the file cannot be created, or the target exists and is write-protected or not a regular
    ///         file (a folder, a pipe, a device)
    explicit AtomicFile(const std::string& path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Appends bytes (buffered). \throws IoError, for example when the disk is full
    void write(const void* data, std::size_t bytes);
    /// Writes bytes to a place of the new file at once, past what write() has appended. Several threads may.
    /// \throws as write()
    void write_at(std::size_t offset, const void* data, std::size_t bytes);
    /// The file appears under its name; nothing can be written afterwards. \throws NotDurable, or IoError; the old file
    /// survives then
    void commit();

    /// The target, as given.
    const std::string& path() const { return path_; }

    friend void remove_temporary_files() noexcept;

  private:
    void create_temporary(const std::string& stem);
    void write_through(const char* data, std::size_t bytes);
    void discard() noexcept;
    [[noreturn]] void fail(const std::string& what, int error);

    std::string path_, target_, temporary_;
    int descriptor_ = -1;
    std::int64_t written_ = 0, sent_ = 0;  ///< bytes, and how many of them are on their way to the disk
    std::string buffer_;
};

/// Removes the temporary files of this process, which is about to end. A signal handler may call it.
void remove_temporary_files() noexcept;

}  // namespace gnnd::io::detail
