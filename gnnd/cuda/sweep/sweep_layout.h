// SPDX-License-Identifier: MIT
#pragma once
/// \file sweep_layout.h
/// The device memory of a sweep.

#include <algorithm>

#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/sweep/bounds.h"

namespace gnnd::cuda {

inline u32 padded(std::int64_t n) {
    return u32(round_up(n, kPanelRows));
}

/// Of the forms that rows may come to.
inline std::int64_t widest_row(const SweepSpace& space) {
    return space.packed == PackedType::f16 ? 2 * high_tiles_of(space.raw.d) * kTileBytes : space.rows.row_bytes;
}

/// Hits that a chosen object has places for.
inline int hits_of_some(int k) {
    return std::max(1024, 2 * k);
}

/// Hits that any object has places for in a step in which all are compared.
constexpr int hits_of_all(int k) {
    return std::max(96, k + 5 * k / 8);
}

/// Objects that are compared apart: those that say which form does for all, and those that are left in the end.
inline constexpr u32 kProbes = 2048;

struct ListsLayout {
    Part ids, distances, bounds;

    ListsLayout() = default;
    ListsLayout(std::int64_t rows, int k, Layout& layout)
        : ids(layout.take(rows * k * 4)), distances(layout.take(rows * k * 4)), bounds(layout.take(rows * 4)) {}
};

/// Of rows that are swept: chosen ones, or all, whose packed rows and lists are there already. Of chosen ones also
/// what those of them need that are compared again.
struct RowsLayout {
    Part packed, objects, again, places, entries, counts, thresholds, overflowed, is_overflowed;
    ListsLayout lists, lists_again;
    std::size_t total;

    RowsLayout(const SweepSpace& space, u32 count, int k, int capacity, bool all) {
        const std::int64_t rows = count;
        Layout layout;
        if (!all) {
            packed = layout.take(rows * widest_row(space));
            lists = {rows, k, layout};
            lists_again = {rows, k, layout};
            for (Part* each : {&objects, &again, &places}) *each = layout.take(rows * 4);
        }
        entries = layout.take(rows * capacity * 8);
        counts = layout.take(rows * 4);
        thresholds = layout.take(std::int64_t(padded(rows)) * std::int64_t(sizeof(Threshold)));
        overflowed = layout.take(rows * 4);
        is_overflowed = layout.take(rows * 4);
        total = layout.end_;
    }
};

/// Of what all rows of a sweep share.
struct SharedLayout {
    Part thresholds, factors, small;
    std::size_t total;

    explicit SharedLayout(const SweepSpace& space) {
        Layout layout;
        if (is_normalized(space.metric)) factors = layout.take(space.raw.n * 4);
        thresholds = layout.take(std::int64_t(padded(space.raw.n)) * std::int64_t(sizeof(Threshold)));
        small = layout.take(256 + std::int64_t(kSpread * sizeof(Counters)));
        total = layout.end_;
    }
};

/// Of all rows once more, split.
struct SplitLayout {
    Part rows, norms, mean;
    std::size_t total;

    explicit SplitLayout(const RawVectors& raw) {
        Layout layout;
        rows = layout.take(raw.n * 2 * high_tiles_of(raw.d) * kTileBytes);
        norms = layout.take(raw.n * 4);
        mean = layout.take(raw.d * 8);
        total = layout.end_;
    }
};

/// Of a sample that is compared with all rows, and of the ceilings that it gives them.
struct SampleLayout {
    Part ids, packed, thresholds, ceilings;
    std::size_t total;

    SampleLayout(const SweepSpace& space, std::int64_t columns) {
        Layout layout;
        ids = layout.take(columns * 4);
        packed = layout.take(columns * widest_row(space));
        thresholds = layout.take(std::int64_t(padded(columns)) * std::int64_t(sizeof(Threshold)));
        ceilings = layout.take(space.raw.n * 4);
        total = layout.end_;
    }
};

}  // namespace gnnd::cuda
