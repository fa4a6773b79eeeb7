// SPDX-License-Identifier: MIT
#pragma once
/// \file mapped_file.h
/// A read-only memory-mapped file that can also be read by range.

#include <cstddef>
#include <cstdint>
#include <string>

namespace gnnd::io::detail {

/// A file that another process truncates while it is mapped raises SIGBUS where data() is touched past the new end, as
/// with every mapping; read() gives IoError there. The library leaves signals alone, for they are the program's: one
/// that is to end with a message handles SIGBUS and asks mapped_path_at() for the file, as the tool does
/// (contrib/cli/bus_error.cpp). Who must not end then reads by VectorFile::read() instead of VectorFile::view().
class MappedFile {
  public:
    /// \throws IoError: missing, a folder or another thing that is not a regular file, empty, not readable
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::byte* data() const { return data_; }  ///< the mapping, size() bytes
    std::size_t size() const { return size_; }       ///< bytes, when the file was opened

    /// Reads [offset, offset + bytes) with pread, leaving the mapping alone. \throws IoError past the end
    void read(std::size_t offset, std::size_t bytes, void* out) const;

    /// \throws IoError when the file was written to since it was opened, as its size and time of modification tell
    void require_unchanged() const;

    const std::string& path() const { return path_; }  ///< as given

  private:
    [[noreturn]] void fail(const std::string& what);
    void close() noexcept;

    std::string path_;
    int descriptor_ = -1;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::int64_t modified_ = 0;  ///< nanoseconds since 1970
};

/// The path of the mapped file that has the address; null where none does. A signal handler may call it.
const char* mapped_path_at(const void* address) noexcept;

}  // namespace gnnd::io::detail
