// SPDX-License-Identifier: MIT
#pragma once
/// \file copy.h
/// Large arrays that grow: room for it, and copies where they have to move.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

namespace gnnd::cpu {

/// What an array of so many elements that will grow has room for: half as many more. Memory that nothing was written to
/// is none yet.
template <class Size>
constexpr Size with_room(Size size) {
    return size + size / 2;
}

/// Reserves room in what has reserve(), where there is so much.
template <class Growing, class Size>
void take_room(Growing& growing, Size room) {
    try {
        growing.reserve(room);
    } catch (const std::bad_alloc&) {  // where address space is limited it does without
    }
}

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
