// SPDX-License-Identifier: MIT
#pragma once
/// \file pages.h
/// Memory of large arrays, whose pages all threads make.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gnnd/cpu/copy.h"

namespace faiss_ext::detail {

/// Touches the pages that an array has room for, up to so many elements, by all threads if they are many. What fills
/// them is one thread, which spends most of its time on waiting for pages (0.3 s where 1,000,000 x 128 floats go into a
/// faiss::IndexFlat).
template <class Array>
void touch_pages(Array& array, std::size_t size) {
    constexpr std::size_t kPage = 4096, kLeast = std::size_t(1) << 24;  // bytes; for less threads cost more
    const std::size_t first = array.size() * sizeof(*array.data()), end = size * sizeof(*array.data());
    if (end < first + kLeast) return;
    const auto pages = std::int64_t((end - first) / kPage);
    auto* const bytes = reinterpret_cast<volatile std::uint8_t*>(array.data());
    // In huge pages, where the system has them, for it is asked for each page.
    const std::uintptr_t from = (reinterpret_cast<std::uintptr_t>(array.data()) + first + kPage - 1) / kPage;
    madvise(reinterpret_cast<void*>(from * kPage), std::size_t(pages - 1) * kPage, MADV_HUGEPAGE);
#pragma omp parallel for schedule(static)
    for (std::int64_t page = 0; page < pages; ++page) bytes[first + std::size_t(page) * kPage] = 0;
}

/// Resizes an array as it does itself, but makes its pages by all threads, and of one that has to move takes room as it
/// is told. What is thrown leaves the array as it was.
/// \param array  a std::vector, or what FAISS from 1.11 on has in its place, which holds one unless it is a view
/// \param room   elements that there is to be room for, where there is so much; fewer than `size`: for those
template <class Array>
void resize_with_pages(Array& array, std::size_t size, std::size_t room = 0) {
    if constexpr (requires { array.is_owned ? array.owned_data.size() : 0; }) {
        if (array.is_owned) resize_with_pages(array.owned_data, size, room);
    } else if constexpr (requires {
                             array.reserve(size);
                             array.assign(array.begin(), array.end());
                         }) {
        if (size > array.capacity()) {
            Array larger;
            gnnd::cpu::take_room(larger, std::max(size, room));
            larger.reserve(size);
            touch_pages(larger, size);
            larger.assign(array.begin(), array.end());
            array = std::move(larger);
        } else {
            touch_pages(array, size);
        }
    }
    array.resize(size);
}

/// The same of one that will grow: what has to move takes room for more.
template <class Array>
void grow_with_pages(Array& array, std::size_t size) {
    resize_with_pages(array, size, gnnd::cpu::with_room(size));
}

}  // namespace faiss_ext::detail
