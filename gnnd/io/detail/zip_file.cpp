// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/zip_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gnnd/error.h"

namespace gnnd::io::detail {
namespace {

/// Table t tells what a byte does to the checksum when t more bytes follow it (Kounavis and Berry, "slicing by 8").
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_tables() {
    CrcTables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1)));
        tables[0][byte] = crc;
    }
    for (std::size_t t = 1; t < 8; ++t)
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[t - 1][byte];
            tables[t][byte] = (before >> 8) ^ tables[0][before & 255];
        }
    return tables;
}

constexpr CrcTables kTables = make_tables();

constexpr std::uint64_t kLarge = 0xffffffff;  // from here on a field's place is in the 64-bit ones

/// Adds a number of so many bytes, the lowest first.
void put(std::string& text, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += char(value >> (8 * i) & 255);
}

}  // namespace

std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t crc) {
    const auto* at = static_cast<const unsigned char*>(data);
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        std::uint64_t word;
        std::memcpy(&word, at, sizeof word);
        word ^= crc;
        crc = 0;
        for (std::size_t t = 0; t < 8; ++t) crc ^= kTables[7 - t][word >> (8 * t) & 255];
    }
    for (; bytes > 0; --bytes, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 255];
    return ~crc;
}

void ZipWriter::write(const void* data, std::size_t bytes) {
    file_.write(data, bytes);
    written_ += bytes;
}

void ZipWriter::for_pieces(const std::vector<Span>& spans,
                           const std::function<void(const char*, std::size_t)>& f) const {
    constexpr std::size_t kPiece = std::size_t(8) << 20;
    for (const Span& span : spans)
        for (std::size_t done = 0; done < span.bytes; done += kPiece) {
            if (interrupt_ && interrupt_()) throw Interrupted("interrupted by the caller");
            f(static_cast<const char*>(span.data) + done, std::min(kPiece, span.bytes - done));
        }
}

std::string ZipWriter::fields(const Member& member, bool directory) const {
    const bool large = member.bytes >= kLarge, far = directory && member.offset >= kLarge;
    std::string extra;
    if (large) put(extra, member.bytes, 8), put(extra, member.bytes, 8);
    if (far) put(extra, member.offset, 8);
    if (!extra.empty()) {
        std::string head;
        put(head, 1, 2), put(head, extra.size(), 2);
        extra.insert(0, head);
    }
    std::string text;
    put(text, large || far ? 45 : 20, 2);  // the version of the format that a reader needs
    put(text, 0, 2), put(text, 0, 2);      // no flags; stored
    put(text, 0, 2), put(text, 0x21, 2);   // 1980-01-01 0:00, so that equal contents give equal files
    put(text, member.crc, 4);
    for (int size = 0; size < 2; ++size) put(text, large ? kLarge : member.bytes, 4);
    put(text, member.name.size(), 2), put(text, extra.size(), 2);
    if (directory) {
        put(text, 0, 2), put(text, 0, 2), put(text, 0, 2);  // no comment, on the first disk, binary
        put(text, 0600U << 16, 4);                          // permissions, for programs that unpack it
        put(text, far ? kLarge : member.offset, 4);
    }
    return text + member.name + extra;
}

void ZipWriter::add(const std::string& name, const std::vector<Span>& spans) {
    Member member{name, 0, 0, written_};
    for_pieces(spans, [&](const char* data, std::size_t bytes) {
        member.crc = crc32(data, bytes, member.crc);
        member.bytes += bytes;
    });
    const std::string head = "PK\3\4" + fields(member, false);
    write(head.data(), head.size());
    for_pieces(spans, [&](const char* data, std::size_t bytes) { write(data, bytes); });
    members_.push_back(std::move(member));
}

void ZipWriter::finish() {
    const std::uint64_t begin = written_;
    for (const Member& member : members_) {
        std::string entry = "PK\1\2";
        put(entry, 3 << 8 | 45, 2);  // made on Unix, by version 4.5
        entry += fields(member, true);
        write(entry.data(), entry.size());
    }
    const std::uint64_t bytes = written_ - begin, end = written_;
    const bool far = begin >= kLarge;
    std::string last;
    if (far) {
        last = "PK\6\6";
        put(last, 44, 8), put(last, 3 << 8 | 45, 2), put(last, 45, 2), put(last, 0, 4), put(last, 0, 4);
        put(last, members_.size(), 8), put(last, members_.size(), 8), put(last, bytes, 8), put(last, begin, 8);
        last += "PK\6\7";
        put(last, 0, 4), put(last, end, 8), put(last, 1, 4);
    }
    last += "PK\5\6";
    put(last, 0, 2), put(last, 0, 2), put(last, members_.size(), 2), put(last, members_.size(), 2);
    put(last, bytes, 4), put(last, far ? kLarge : begin, 4), put(last, 0, 2);
    write(last.data(), last.size());
}

}  // namespace gnnd::io::detail
