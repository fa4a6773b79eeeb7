// SPDX-License-Identifier: MIT
#pragma once
/// \file temp_dir.h
/// A folder for a test's files, gone when the test ends, and whole files as strings of bytes.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>

namespace gnnd::test {

class TempDir {
  public:
    TempDir() : path_(::testing::TempDir() + "gnnd-test-XXXXXX") {
        if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot create " + path_);
    }
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    const std::string& path() const { return path_; }
    /// The path of a file of that name in the folder.
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    /// Counts the folder's entries, for tests that something left no temporary file behind.
    std::size_t entries() const {
        const auto begin = std::filesystem::directory_iterator(path_);
        return std::size_t(std::distance(begin, std::filesystem::directory_iterator()));
    }

  private:
    std::string path_;
};

inline std::string read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The bytes that the integers have in memory.
inline std::string bytes_of(std::initializer_list<std::int32_t> values) {
    return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(std::int32_t)};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::filesystem::remove(path);  // ext4 flushes a file to disk when it was overwritten, but not a new one
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), std::streamsize(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace gnnd::test
