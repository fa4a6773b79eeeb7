// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file array.h
/// Large arrays of numbers that are written right after they were made.

#include <memory>
#include <utility>
#include <vector>

namespace gnnd {

/// The allocator of Array. It leaves new elements as they are, for several threads to fill: touching new memory takes
/// longer than what is computed into it.
template <class T>
struct Untouched : std::allocator<T> {
    /// \cond
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
