// SPDX-License-Identifier: MIT
#include "gnnd/detail/fold.h"

#include <algorithm>
#include <atomic>

#include "gnnd/cpu/parallel.h"
#include "gnnd/params.h"

namespace gnnd::detail {
namespace {

/// A row of k entries, in order of `sign` * distance and then id; -1 at its end.
template <class Id>
struct Row {
    Id* ids;
    float* distances;
};

/// True if a stands before b.
bool before(float sign, float a, std::int64_t a_id, float b, std::int64_t b_id) {
    return sign * a < sign * b || (a == b && a_id < b_id);
}

/// \return entries that came in
template <class Id>
std::int64_t fold_row(const std::int32_t* found_ids, const float* found_distances, std::int64_t found_k,
                      const Partner& partner, std::int64_t k, float sign, Row<Id> row) {
    std::int64_t from_found = 0, from_row = 0;
    const auto skip = [&] {
        while (from_found < found_k && (found_ids[from_found] < partner.first || found_ids[from_found] >= partner.last))
            ++from_found;
    };
    const auto offered = [&] { return Id(found_ids[from_found] - partner.first + partner.begin); };
    const auto is_before = [&](std::int64_t j) {
        return row.ids[j] < 0 || before(sign, found_distances[from_found], offered(), row.distances[j], row.ids[j]);
    };
    skip();
    if (from_found == found_k || !is_before(k - 1)) return 0;  // the usual case once many partners have been folded

    Id ids[kMaxK];
    float distances[kMaxK];
    std::int64_t entered = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        if (from_found < found_k && is_before(from_row)) {
            ids[j] = offered();
            distances[j] = found_distances[from_found++];
            ++entered;
            skip();
        } else {
            ids[j] = row.ids[from_row];
            distances[j] = row.distances[from_row++];
        }
    }
    std::copy_n(ids, k, row.ids);
    std::copy_n(distances, k, row.distances);
    return entered;
}

}  // namespace

template <class Id>
std::int64_t fold(const KnnGraphView& found, const Partner& partner, std::int64_t k, Id* ids, float* distances,
                  int threads) {
    constexpr std::int64_t kRows = 1024;
    const float sign = is_similarity(found.metric) ? -1.0f : 1.0f;
    std::atomic<std::int64_t> entered{0};
    const cpu::Team team{cpu::Team::resolve(threads), nullptr};
    team.for_chunks(found.n, kRows, [&](int, std::int64_t begin, std::int64_t end) {
        std::int64_t here = 0;
        for (std::int64_t i = begin; i < end; ++i)
            here += fold_row(found.ids_of(i), found.distances_of(i), found.k, partner, k, sign,
                             Row<Id>{ids + i * k, distances + i * k});
        entered += here;
    });
    return entered;
}

template <class Id>
void put_rows(const KnnGraphView& graph, std::int64_t shift, Id* ids, float* distances, int threads) {
    constexpr std::int64_t kEntries = 1 << 16;
    const cpu::Team team{cpu::Team::resolve(threads), nullptr};
    team.for_chunks(graph.n * graph.k, kEntries, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t entry = begin; entry < end; ++entry) {
            const std::int32_t id = graph.ids[entry];
            ids[entry] = id < 0 ? Id(id) : Id(id + shift);
            distances[entry] = graph.distances[entry];
        }
    });
}

template std::int64_t fold(const KnnGraphView&, const Partner&, std::int64_t, std::int32_t*, float*, int);
template std::int64_t fold(const KnnGraphView&, const Partner&, std::int64_t, std::int64_t*, float*, int);
template void put_rows(const KnnGraphView&, std::int64_t, std::int32_t*, float*, int);
template void put_rows(const KnnGraphView&, std::int64_t, std::int64_t*, float*, int);

}  // namespace gnnd::detail
