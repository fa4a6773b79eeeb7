// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file array.h
/// Large arrays of numbers that are written right after they were made.

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace gnnd {

/// \cond
namespace detail {
/// From so many bytes on arrays are asked to lie in huge pages: to touch new memory page by page takes five times as
/// long (measured: benchs/NOTEBOOK.md), and what is lost at the end is little beside this.
inline constexpr std::size_t kHugeArray = std::size_t(32) << 20;
/// \throws std::bad_alloc
void* allocate_huge(std::size_t bytes);
void free_huge(void* pointer) noexcept;
}  // namespace detail
/// \endcond

/// The allocator of Array. It leaves new elements as they are, for several threads to fill: touching new memory takes
/// longer than what is computed into it.
template <class T>
struct Untouched : std::allocator<T> {
    /// \cond
    T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        if (count * sizeof(T) < detail::kHugeArray) return std::allocator<T>::allocate(count);
        return static_cast<T*>(detail::allocate_huge(count * sizeof(T)));
    }
    void deallocate(T* pointer, std::size_t count) noexcept {
        if (count * sizeof(T) < detail::kHugeArray) return std::allocator<T>::deallocate(pointer, count);
        detail::free_huge(pointer);
    }
    template <class U>
    struct rebind {
        using other = Untouched<U>;
    };
    template <class U, class... Arguments>
    void construct(U* at, Arguments&&... arguments) {
        if constexpr (sizeof...(arguments) != 0)
            ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }
    /// \endcond
};

/// A vector whose new elements hold whatever the memory held, unless a value is given for them.
template <class T>
using Array = std::vector<T, Untouched<T>>;

}  // namespace gnnd
