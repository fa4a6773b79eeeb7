// SPDX-License-Identifier: MIT
#pragma once
/// \file lists.h
/// The lists of the graph while it is being built.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gnnd/cpu/kernels.h"
#include "gnnd/resources.h"

namespace gnnd::cpu {

/// Lets the other thread of a core go first while this one waits.
inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// One entry: the key in the upper half, as bits that order like the float; then the id and the NEW flag. So entries
/// order by (key, id), and one comparison serves for both.
using Entry = std::uint64_t;

inline constexpr Entry kEmpty = ~Entry(0);

inline Entry make_entry(float key, std::int32_t id, bool is_new) {
    const auto bits = std::bit_cast<std::uint32_t>(key);
    const std::uint32_t ordered = bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
    return Entry(ordered) << 32 | Entry(std::uint32_t(id)) << 1 | Entry(is_new);
}
inline float key_of(Entry e) {
    const auto ordered = std::uint32_t(e >> 32);
    return std::bit_cast<float>(ordered ^ (ordered >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}
inline std::int32_t id_of(Entry e) {
    return std::int32_t(std::uint32_t(e) >> 1);
}
inline bool is_new(Entry e) {
    return (e & 1) != 0;
}

/// n lists of `length` entries, each ascending, kEmpty at the end, no id twice.
///
/// A list takes in the best of what it is offered, whatever the order of the offers: entries are totally ordered, and
/// what counts as an improvement is fixed for a whole round. So a round gives the same lists on any number of threads.
class Lists {
  public:
    Lists(std::int64_t n, int length, Resources& resources)
        : n_(n), length_(length), entries_(resources, n * length), bounds_(resources, n), locks_(resources, n) {
        std::fill(entries_.begin(), entries_.end(), kEmpty);
        std::memset(locks_.data(), 0, locks_.size());
        for (std::int64_t i = 0; i < n; ++i) start_round(i);
    }

    /// Memory that they take.
    static std::size_t bytes(std::int64_t n, int length) {
        return std::size_t(n) * (std::size_t(length) * sizeof(Entry) + sizeof(float) + 1);
    }

    std::int64_t n() const { return n_; }
    int length() const { return length_; }
    Entry* of(std::int64_t i) { return entries_.data() + i * length_; }
    const Entry* of(std::int64_t i) const { return entries_.data() + i * length_; }

    /// Largest key that list i still takes. Never below what take() would accept, so that it serves as a filter.
    float bound(std::int64_t i) const {
        return std::atomic_ref<float>(const_cast<float&>(bounds_[i])).load(std::memory_order_relaxed);
    }

    /// From here on only keys below the list's present last one are improvements: equal ones would only exchange
    /// objects at the same distance, without end where many vectors are equal.
    void start_round(std::int64_t i) {
        const Entry last = of(i)[length_ - 1];
        bounds_[i] = last == kEmpty ? HUGE_VALF : std::nextafter(key_of(last), -HUGE_VALF);
    }

    /// From here on equal keys with a lesser id are improvements too: nothing is to come after this round, and its
    /// result does not depend on what the lists held before.
    void start_last_round(std::int64_t i) {
        const Entry last = of(i)[length_ - 1];
        bounds_[i] = last == kEmpty ? HUGE_VALF : key_of(last);
    }

    /// Asks the processor to bring the bound of list i near.
    void prefetch_bound(std::int64_t i) const { __builtin_prefetch(&bounds_[i]); }

    /// The same for list i and its lock.
    void prefetch(std::int64_t i) const {
        __builtin_prefetch(&locks_[i], 1);
        const Entry* list = of(i);
        for (int j = 0; j < length_; j += 64 / int(sizeof(Entry))) __builtin_prefetch(list + j, 1);
    }

    /// Offers entries (marked NEW) to list i; thread-safe. Returns how many entered.
    int take(std::int64_t i, const Entry* offers, int count) {
        constexpr std::int32_t kLastId = 0x7fffffff;
        Entry* list = of(i);
        const Entry& last = list[length_ - 1];
        std::atomic_ref<std::uint8_t> lock(locks_[i]);
        while (lock.exchange(1, std::memory_order_acquire) != 0)
            while (lock.load(std::memory_order_relaxed) != 0) pause();
        const float limit = bound(i);
        const int entered = take_(list, length_, offers, count, make_entry(limit, kLastId, true));
        if (entered != 0 && last != kEmpty && key_of(last) < limit)
            std::atomic_ref<float>(bounds_[i]).store(key_of(last), std::memory_order_relaxed);
        lock.store(0, std::memory_order_release);
        return entered;
    }

  private:
    std::int64_t n_;
    int length_;
    Buffer<Entry> entries_;
    Buffer<float> bounds_;
    Buffer<std::uint8_t> locks_;
    TakeEntries take_ = taker(supported_isas().back());
};

}  // namespace gnnd::cpu
