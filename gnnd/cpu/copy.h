// SPDX-License-Identifier: MIT
#pragma once
/// \file copy.h
/// Copies of large arrays.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gnnd::cpu {

/// Copies `count` elements, a part a thread: most of the time goes into touching new memory.
template <class T>
void copy_parallel(const T* from, std::size_t count, T* to) {
    constexpr std::size_t kChunk = 1 << 18;
    const auto chunks = std::int64_t((count + kChunk - 1) / kChunk);
#pragma omp parallel for schedule(static) if (chunks > 16)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::size_t begin = std::size_t(chunk) * kChunk;
        std::copy_n(from + begin, std::min(kChunk, count - begin), to + begin);
    }
}

}  // namespace gnnd::cpu
