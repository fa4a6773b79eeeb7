// SPDX-License-Identifier: MIT
#pragma once
/// \file pages.h
/// Memory of large arrays, whose pages all threads make.

#include <cstddef>
#include <cstdint>

namespace faiss_ext::detail {

/// Reserves room for `size` elements and has all threads touch its pages. A vector is filled by one thread, which
/// spends most of its time on waiting for pages: 0.3 s where 1,000,000 x 128 floats go into a faiss::IndexFlat. \param
/// array  a std::vector, or what FAISS from 1.11 on has in its place; one that cannot reserve is left alone
template <class Array>
void reserve_pages(Array& array, std::size_t size) {
    constexpr std::size_t kPage = 4096, kLeast = std::size_t(1) << 24;  // bytes; for less threads cost more
    if constexpr (requires { array.reserve(size); }) {
        array.reserve(size);
        const std::size_t first = array.size() * sizeof(*array.data()), end = size * sizeof(*array.data());
        if (end < first + kLeast) return;
        auto* const bytes = reinterpret_cast<volatile std::uint8_t*>(array.data());
        const auto pages = std::int64_t((end - first) / kPage);
#pragma omp parallel for schedule(static)
        for (std::int64_t page = 0; page < pages; ++page) bytes[first + std::size_t(page) * kPage] = 0;
    }
}

/// Copies `count` elements, a part a thread.
template <class T>
void copy_parallel(const T* from, std::size_t count, T* to) {
    constexpr std::int64_t kChunk = 1 << 18;
    const auto chunks = std::int64_t((count + kChunk - 1) / kChunk);
#pragma omp parallel for schedule(static) if (chunks > 16)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::size_t begin = std::size_t(chunk) * kChunk, end = begin + kChunk < count ? begin + kChunk : count;
        for (std::size_t i = begin; i < end; ++i) to[i] = from[i];
    }
}

}  // namespace faiss_ext::detail
