// SPDX-License-Identifier: MIT
#pragma once
/// \file signal_list.h
/// A list of objects that a signal handler can go through while others add to it.

#include <array>
#include <atomic>
#include <cstddef>

namespace gnnd::io::detail {

/// Neither locks nor allocates. What comes when all places are taken is left out.
template <class T>
class SignalList {
  public:
    void add(const T* object) noexcept {
        for (std::atomic<const T*>& place : places_) {
            const T* empty = nullptr;
            if (place.compare_exchange_strong(empty, object)) return;
        }
    }

    void remove(const T* object) noexcept {
        for (std::atomic<const T*>& place : places_) {
            const T* expected = object;
            if (place.compare_exchange_strong(expected, nullptr)) return;
        }
    }

    /// The first object for which `fits` is true, or null.
    template <class Fits>
    const T* find(const Fits& fits) const noexcept {
        for (const std::atomic<const T*>& place : places_)
            if (const T* object = place.load(); object != nullptr && fits(*object)) return object;
        return nullptr;
    }

  private:
    static_assert(std::atomic<const T*>::is_always_lock_free, "a signal handler may only touch lock-free atomics");
    std::array<std::atomic<const T*>, 1024> places_{};
};

}  // namespace gnnd::io::detail
