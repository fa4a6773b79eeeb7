#pragma once
/// \file atomic_file.h
/// Writing a file so that it is either the old or the new one, whole, whatever happens.

#include <cstddef>
#include <string>

namespace gnnd::io {

/// Writes to a temporary name beside the target; commit() flushes it to disk, renames it over the target and flushes
/// the folder. Without commit() the temporary file is removed and the target stays as it was.
class AtomicFile {
  public:
    /// \throws IoError when the file cannot be created
    explicit AtomicFile(const std::string& path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Appends bytes (buffered). \throws IoError, for example when the disk is full
    void write(const void* data, std::size_t bytes);
    void commit();

    const std::string& path() const { return path_; }

  private:
    void flush();
    [[noreturn]] void fail(const char* what);

    std::string path_, temporary_;
    int descriptor_ = -1;
    std::string buffer_;
};

}  // namespace gnnd::io
