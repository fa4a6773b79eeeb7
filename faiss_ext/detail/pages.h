// SPDX-License-Identifier: MIT
#pragma once
/// \file pages.h
/// Memory of large arrays, whose pages all threads make.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace faiss_ext::detail {

/// Resizes an array. One that at least doubles, so that it moves anyway, has its pages touched by all threads first:
/// what fills it is one thread, which spends most of its time on waiting for pages (0.3 s where 1,000,000 x 128 floats
/// go into a faiss::IndexFlat).
/// \param array  a std::vector, or what FAISS from 1.11 on has in its place; one that cannot reserve is only resized
template <class Array>
void resize_with_pages(Array& array, std::size_t size) {
    if constexpr (requires { array.reserve(size); }) {
        constexpr std::size_t kPage = 4096, kLeast = std::size_t(1) << 24;  // bytes; for less threads cost more
        if (size >= 2 * array.size()) {
            array.reserve(size);
            const std::size_t first = array.size() * sizeof(*array.data()), end = size * sizeof(*array.data());
            auto* const bytes = reinterpret_cast<volatile std::uint8_t*>(array.data());
            const auto pages = end < first + kLeast ? 0 : std::int64_t((end - first) / kPage);
            if (pages > 0) {  // in huge pages, where the system has them, for it is asked for each page
                const std::uintptr_t from =
                    (reinterpret_cast<std::uintptr_t>(array.data()) + first + kPage - 1) / kPage;
                madvise(reinterpret_cast<void*>(from * kPage), std::size_t(pages - 1) * kPage, MADV_HUGEPAGE);
            }
#pragma omp parallel for schedule(static) if (pages > 0)
            for (std::int64_t page = 0; page < pages; ++page) bytes[first + std::size_t(page) * kPage] = 0;
        }
    }
    array.resize(size);
}

/// Copies `count` elements, a part a thread.
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

}  // namespace faiss_ext::detail
