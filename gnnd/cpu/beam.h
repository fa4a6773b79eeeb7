// SPDX-License-Identifier: MIT
#pragma once
/// \file beam.h
/// The state of one greedy search along a graph's rows.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gnnd/cpu/lists.h"

namespace gnnd::cpu {

/// The nearest objects seen, ascending; those whose rows were not walked along yet are NEW.
class Beam {
  public:
    Beam(std::size_t walked, std::size_t length) : walked_(walked), length_(length) {}
    void clear() { entries_.clear(); }
    const std::vector<Entry>& entries() const { return entries_; }

    void add(float key, std::int32_t id) {
        const Entry entry = make_entry(key, id, true);
        if (entries_.size() == length_ && entry > entries_.back()) return;
        const auto place = std::lower_bound(entries_.begin(), entries_.end(), entry & ~Entry(1));
        if (place != entries_.end() && (*place | 1) == entry) return;  // seen before
        entries_.insert(place, entry);
        if (entries_.size() > length_) entries_.pop_back();
    }
    /// The nearest whose row is to be walked along, not NEW from here on; -1: none.
    std::int32_t next() {
        const std::size_t walked = std::min<std::size_t>(entries_.size(), walked_);
        for (std::size_t i = 0; i < walked; ++i)
            if (is_new(entries_[i])) return id_of(entries_[i] &= ~Entry(1));
        return -1;
    }

  private:
    std::size_t walked_;  ///< so many of the nearest are walked along
    std::size_t length_;
    std::vector<Entry> entries_;
};

/// Remembers which objects a search has seen. It forgets one whose place another takes, which is compared again then
/// and changes nothing but the time.
class Seen {
  public:
    void clear() { std::fill(ids_.begin(), ids_.end(), -1); }
    /// False if it was there already.
    bool add(std::int32_t id) {
        std::int32_t& place = ids_[std::uint32_t(id) * 0x9e3779b1u >> (32 - kBits)];
        return std::exchange(place, id) != id;
    }

  private:
    static constexpr int kBits = 12;
    std::vector<std::int32_t> ids_ = std::vector<std::int32_t>(std::size_t(1) << kBits, -1);
};

}  // namespace gnnd::cpu
