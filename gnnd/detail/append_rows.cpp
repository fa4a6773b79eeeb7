// SPDX-License-Identifier: MIT
#include "gnnd/detail/append_rows.h"

#include <algorithm>
#include <utility>

namespace gnnd::detail {

namespace {

/// A whole row and what is beside it change places.
void exchange_row(RowEntry* entries, std::int32_t* ids, float* distances, std::int64_t k) {
    for (std::int64_t j = 0; j < k; ++j) {
        std::swap(entries[j].id, ids[j]);
        std::swap(entries[j].distance, distances[j]);
    }
}

}  // namespace

// Columns ascend, so that no entry moves once it is in the row.
void AppendedRows::put_in(std::size_t c, std::int32_t* ids, float* distances, std::int64_t k) {
    RowEntry *entry = entries.data() + begin_of(c), *const end = entries.data() + ends[c];
    if (end - entry == k) return exchange_row(entry, ids, distances, k);
    for (; entry != end; ++entry) {
        const std::int64_t at = entry->column;
        const std::int32_t last_id = ids[k - 1];
        const float last_distance = distances[k - 1];
        std::copy_backward(ids + at, ids + k - 1, ids + k);
        std::copy_backward(distances + at, distances + k - 1, distances + k);
        ids[at] = std::exchange(entry->id, last_id);
        distances[at] = std::exchange(entry->distance, last_distance);
    }
}

void AppendedRows::take_out(std::size_t c, std::int32_t* ids, float* distances, std::int64_t k) {
    RowEntry *const begin = entries.data() + begin_of(c), *entry = entries.data() + ends[c];
    if (entry - begin == k) return exchange_row(begin, ids, distances, k);
    while (entry != begin) {
        --entry;
        const std::int64_t at = entry->column;
        const std::int32_t id = ids[at];
        const float distance = distances[at];
        std::copy(ids + at + 1, ids + k, ids + at);
        std::copy(distances + at + 1, distances + k, distances + at);
        ids[k - 1] = std::exchange(entry->id, id);
        distances[k - 1] = std::exchange(entry->distance, distance);
    }
}

void tell_row(AppendedRows& told, std::int32_t object, const KnnGraphView& before, const KnnGraphView& after,
              std::int64_t old) {
    std::int64_t kept = 0;
    bool whole = false;
    for (std::int64_t j = 0; j < after.k && !whole; ++j) {
        if (after.ids[j] >= old) continue;
        whole = after.ids[j] != before.ids[kept] || after.distances[j] != before.distances[kept];
        ++kept;
    }
    for (std::int64_t j = 0; j < after.k; ++j)
        if (whole || after.ids[j] >= old) told.entries.push_back({std::int32_t(j), after.ids[j], after.distances[j]});
    told.objects.push_back(object);
    told.ends.push_back(std::int64_t(told.entries.size()));
}

}  // namespace gnnd::detail
