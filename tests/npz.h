// SPDX-License-Identifier: MIT
#pragma once
/// \file npz.h
/// Reads npz files, which are zip archives of npy files, without the code that writes them.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gnnd/io/detail/zip_file.h"

namespace gnnd::test {

/// `size` bytes, the lowest first.
inline std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t(std::uint8_t(bytes.at(at + i))) << (8 * i);
    return value;
}

/// The members of a zip archive by name, read by its directory; checks what it says of them.
inline std::map<std::string, std::string> unzip(const std::string& bytes) {
    std::map<std::string, std::string> members;
    const std::size_t end = bytes.size() - 22;
    EXPECT_EQ(bytes.substr(end, 4), "PK\5\6");
    std::size_t at = number_at(bytes, end + 16, 4);
    EXPECT_EQ(at + number_at(bytes, end + 12, 4), end);
    for (std::uint64_t left = number_at(bytes, end + 10, 2); left > 0; --left) {
        EXPECT_EQ(bytes.substr(at, 4), "PK\1\2");
        const std::size_t size = number_at(bytes, at + 24, 4), name_size = number_at(bytes, at + 28, 2);
        const std::size_t local = number_at(bytes, at + 42, 4);
        const std::string name = bytes.substr(at + 46, name_size);
        EXPECT_EQ(bytes.substr(local, 4), "PK\3\4");
        EXPECT_EQ(bytes.substr(local + 30, name_size), name);
        EXPECT_EQ(bytes.substr(local + 6, 20), bytes.substr(at + 8, 20)) << "what both headers say alike";
        const std::string data = bytes.substr(local + 30 + name_size, size);
        EXPECT_EQ(number_at(bytes, at + 16, 4), io::detail::crc32(data.data(), data.size())) << name;
        EXPECT_EQ(number_at(bytes, at + 20, 4), size) << "stored";
        members[name] = data;
        at += 46 + name_size;
    }
    EXPECT_EQ(at, end);
    return members;
}

/// The elements of an npy file; checks that it has that header.
template <class T>
std::vector<T> npy(const std::string& bytes, const std::string& descr, const std::string& shape) {
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
    const std::size_t begin = 10 + number_at(bytes, 8, 2);
    EXPECT_EQ(begin % 64, 0u);
    const std::string header = bytes.substr(10, begin - 10);
    EXPECT_EQ(header.find("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }"), 0u)
        << header;
    std::vector<T> elements((bytes.size() - begin) / sizeof(T));
    if (!elements.empty()) std::memcpy(elements.data(), bytes.data() + begin, elements.size() * sizeof(T));
    return elements;
}

}  // namespace gnnd::test
