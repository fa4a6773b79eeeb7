// SPDX-License-Identifier: MIT
#pragma once
/// \file forged_graph_file.h
/// Graph files whose checksums fit whatever else their bytes say, as a faulty writer would leave them.

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace gnnd::test {

/// Makes the checksums of a file with one block of rows fit its other bytes.
inline std::string with_fitting_checksums(std::string bytes) {
    constexpr std::size_t kHeader = 64, kSum = sizeof(std::uint64_t);
    if (bytes.size() < kHeader + kSum) return bytes;
    const auto put = [&](std::size_t at, std::uint64_t sum) { std::memcpy(bytes.data() + at, &sum, kSum); };
    const std::size_t table = bytes.size() - kSum;
    put(table, XXH3_64bits(bytes.data() + kHeader, table - kHeader));
    put(40, XXH3_64bits(bytes.data() + table, kSum));
    put(56, XXH3_64bits(bytes.data(), 56));
    return bytes;
}

}  // namespace gnnd::test
