// SPDX-License-Identifier: MIT
// Exhaustive comparison: exact neighbours, and the metric's value of given pairs.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/insert.h"
#include "gnnd/cpu/lists.h"
#include "gnnd/cpu/pack.h"
#include "gnnd/cpu/space.h"
#include "gnnd/detail/fits.h"

namespace gnnd::cpu {
namespace {

/// To look for integers and to write them takes longer than it saves of 64 queries, and less of 1,000
/// (benchs/NOTEBOOK.md).
constexpr std::int64_t kWorthPacking = 512;

/// The k smallest entries seen, as a heap whose root is the largest.
void keep_smallest(std::vector<Entry>& heap, int k, Entry entry) {
    if (int(heap.size()) < k) {
        heap.push_back(entry);
        std::push_heap(heap.begin(), heap.end());
    } else if (entry < heap.front()) {
        std::pop_heap(heap.begin(), heap.end());
        heap.back() = entry;
        std::push_heap(heap.begin(), heap.end());
    }
}

/// Objects whose nearest are looked for.
struct Queries {
    const Space& space;
    const std::int32_t* rows;    ///< of the space
    const std::int32_t* selves;  ///< the same objects among those that they are compared with, -1 where they are not
};

void compare(const Space& space, const Team& team, const Queries& queries, std::int64_t count,
             const std::int32_t* others, std::int64_t other_count, int k, Resources& resources, std::int32_t* ids,
             float* distances) {
    std::vector<Block> blocks;
    for (int t = 0; t < team.threads; ++t) blocks.emplace_back(space, kQueries, kColumns, resources);

    team.for_chunks(count, kQueries, [&](int thread, std::int64_t begin, std::int64_t end) {
        Block& block = blocks[thread];
        const int rows = int(end - begin);
        std::vector<std::vector<Entry>> heaps(rows);
        std::int32_t numbers[kColumns];
        for (std::int64_t first = 0; first < other_count; first += kColumns) {
            const int column_count = int(std::min<std::int64_t>(kColumns, other_count - first));
            std::iota(numbers, numbers + column_count, std::int32_t(first));
            const std::int32_t* columns = others != nullptr ? others + first : numbers;
            block.compute(queries.space, queries.rows + begin, rows, columns, column_count);
            for (int i = 0; i < rows; ++i) {
                const float* row = block.row(i);
                const float bound = int(heaps[i].size()) < k ? HUGE_VALF : key_of(heaps[i].front());
                for (int j = 0; j < column_count; ++j)
                    if (row[j] <= bound && columns[j] != queries.selves[begin + i])
                        keep_smallest(heaps[i], k, make_entry(row[j], columns[j], false));
            }
        }
        for (int i = 0; i < rows; ++i) {
            std::sort_heap(heaps[i].begin(), heaps[i].end());
            const std::int64_t row = (begin + i) * k;
            for (int j = 0; j < k; ++j) {
                const bool found = j < int(heaps[i].size());
                ids[row + j] = found ? id_of(heaps[i][j]) : -1;
                distances[row + j] = found ? space.value_of(key_of(heaps[i][j])) : worst_value(space.metric);
            }
        }
    });
}

}  // namespace

void nearest_among(const Space& space, const Team& team, const std::int32_t* queries, std::int64_t count,
                   const std::int32_t* others, std::int64_t other_count, int k, Resources& resources, std::int32_t* ids,
                   float* distances) {
    compare(space, team, {space, queries, queries}, count, others, other_count, k, resources, ids, distances);
}

KnnGraph nearest_among(const Space& space, const Team& team, const std::int32_t* queries, std::int64_t count,
                       const std::int32_t* others, std::int64_t other_count, int k, Resources& resources) {
    KnnGraph graph(count, k, space.metric);
    nearest_among(space, team, queries, count, others, other_count, k, resources, graph.ids(), graph.distances());
    return graph;
}

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, int k,
                         Metric metric, int threads, const Callbacks& callbacks, Resources& resources) {
    const Team team{Team::resolve(threads), &callbacks.interrupt};
    const auto nearest_in = [&](const VectorView& rows) {
        const Space space(rows, metric, team, resources);
        return nearest_among(space, team, queries, count, nullptr, rows.n, k, resources);
    };
    if (const auto packed =
            count >= kWorthPacking ? PackedRows::of({&vectors, 1}, metric, team, resources) : std::nullopt) {
        std::optional<KnnGraph> graph;
        if (detail::fits([&] { graph = nearest_in(packed->view()); })) return std::move(*graph);
    }
    return nearest_in(vectors);
}

KnnGraph nearest_of(const VectorView& vectors, const VectorView& sample, const std::int32_t* selves, int k,
                    Metric metric, int threads, const Callbacks& callbacks, Resources& resources) {
    const Team team{Team::resolve(threads), &callbacks.interrupt};
    const Space space(vectors, metric, team, resources), of_sample(sample, metric, team, resources);
    std::vector<std::int32_t> rows(sample.n);
    std::iota(rows.begin(), rows.end(), 0);
    KnnGraph graph(sample.n, k, metric);
    compare(space, team, {of_sample, rows.data(), selves}, sample.n, nullptr, vectors.n, k, resources, graph.ids(),
            graph.distances());
    return graph;
}

void pair_distances(const VectorView& vectors, Metric metric, const std::int32_t* a, const std::int32_t* b,
                    std::int64_t count, float* out, Resources& resources) {
    const Team team{Team::resolve(0), nullptr};
    const Space space(vectors, metric, team, resources);
    std::vector<Block> blocks;
    for (int t = 0; t < team.threads; ++t) blocks.emplace_back(space, 1, kColumns, resources);
    team.for_chunks(count, 1024, [&](int thread, std::int64_t begin, std::int64_t end) {
        Block& block = blocks[thread];
        for (std::int64_t i = begin; i < end;) {
            if (b[i] < 0) {
                out[i++] = worst_value(metric);
                continue;
            }
            // A run of pairs with the same first object is one row of a block.
            int run = 1;
            while (run < kColumns && i + run < end && a[i + run] == a[i] && b[i + run] >= 0) ++run;
            block.compute(a + i, 1, b + i, run);
            for (int j = 0; j < run; ++j) out[i + j] = space.value_of(block.row(0)[j]);
            i += run;
        }
    });
}

}  // namespace gnnd::cpu
