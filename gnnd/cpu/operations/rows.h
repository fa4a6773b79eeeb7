// SPDX-License-Identifier: MIT
#pragma once
/// \file rows.h
/// Rows of a graph by ascending ids: entries as keys, the id in the upper half and the value's bits in the lower one.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gnnd/cpu/operations/edges.h"

namespace gnnd::cpu {

using Key = std::uint64_t;

inline Key make_key(std::int32_t id, float value) {
    return Key(std::uint32_t(id)) << 32 | std::bit_cast<std::uint32_t>(value);
}
inline std::int32_t id_of(Key key) {
    return std::int32_t(key >> 32);
}
inline float value_of(Key key) {
    return std::bit_cast<float>(std::uint32_t(key));
}

/// Rows of up to so many entries are sorted by counting.
inline constexpr int kCounted = 64;

/// Sorts by counting how many are less, which takes no branch and several comparisons at a time.
inline void sort_by_counting(Key* keys, int count) {
    std::int32_t ids[kCounted], places[kCounted];
    Key sorted[kCounted];
    for (int i = 0; i < count; ++i) ids[i] = id_of(keys[i]);
    for (int i = 0; i < count; ++i) {
        const std::int32_t id = ids[i];
        int place = 0;
        for (int j = 0; j < count; ++j) place += int(ids[j] < id);
        places[i] = place;
    }
    for (int i = 0; i < count; ++i) sorted[i] = keys[i];  // a place stays free where an id is there twice
    for (int i = 0; i < count; ++i) sorted[places[i]] = keys[i];
    std::copy_n(sorted, count, keys);
}

/// The row's entries that count, by id. Places for all columns are needed.
/// \return how many
/// \throws InvalidArgument for an id that is there twice
inline int sorted_row(const Edges& edges, std::int64_t i, Key* keys) {
    const std::int32_t* ids = edges.ids_of(i);
    const float* values = edges.values_of(i);
    int count = 0;
    for (std::int64_t j = 0; j < edges.columns; ++j) {
        keys[count] = make_key(ids[j], values[j]);
        count += int(edges.counts(ids[j], values[j]));
    }
    if (count <= kCounted)
        sort_by_counting(keys, count);
    else
        std::sort(keys, keys + count);
    int twice = 0;
    for (int j = 1; j < count; ++j) twice |= int(id_of(keys[j]) <= id_of(keys[j - 1]));
    if (twice != 0) detail::refuse_double(i);
    return count;
}

}  // namespace gnnd::cpu
