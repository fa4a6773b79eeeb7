// SPDX-License-Identifier: MIT
#pragma once
/// \file zip_file.h
/// Archives of uncompressed files, as NumPy's npz are.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gnnd/io/detail/atomic_file.h"

namespace gnnd::io::detail {

/// The checksum of zip files (ISO 3309, polynomial 0x04c11db7, reflected), of bytes that follow those of `crc`.
std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t crc = 0);

/// Bytes in memory.
struct Span {
    const void* data;
    std::size_t bytes;
};

/// Writes a zip archive (PKWARE's APPNOTE 6.3) whose members are stored. Sizes and offsets from 4 GiB on take its
/// 64-bit fields.
class ZipWriter {
  public:
    /// \param interrupt  asked between pieces of some megabytes; true ends a call with gnnd::Interrupted
    ZipWriter(AtomicFile& file, std::function<bool()> interrupt) : file_(file), interrupt_(std::move(interrupt)) {}

    /// A member, of these bytes one after the other. Reads them twice.
    void add(const std::string& name, const std::vector<Span>& spans);
    /// The directory. Nothing can be added afterwards.
    void finish();

  private:
    struct Member {
        std::string name;
        std::uint32_t crc;
        std::uint64_t bytes, offset;
    };
    /// The fields that local header and directory have in common, with the 64-bit field behind the name.
    std::string fields(const Member& member, bool directory) const;
    void write(const void* data, std::size_t bytes);
    void for_pieces(const std::vector<Span>& spans, const std::function<void(const char*, std::size_t)>& f) const;

    AtomicFile& file_;
    std::function<bool()> interrupt_;
    std::vector<Member> members_;
    std::uint64_t written_ = 0;
};

}  // namespace gnnd::io::detail
