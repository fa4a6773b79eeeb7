// SPDX-License-Identifier: MIT
// All pairs of objects, each compared once.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gnnd/cpu/steps.h"

namespace gnnd::cpu {
namespace {

/// True where no pair of the tiles counts: all of their objects are of one set.
bool are_known(const detail::Pairs& pairs, std::int64_t first_row, std::int64_t first_column) {
    const auto before = [&](std::int64_t first) { return first + kTile <= std::int64_t(pairs.border); };
    const auto behind = [&](std::int64_t first) { return first >= std::int64_t(pairs.border); };
    return !pairs.all() && ((before(first_row) && before(first_column)) || (behind(first_row) && behind(first_column)));
}

/// Offers the objects of two tiles to each other, or those of one among themselves.
void join_tiles(State& state, Worker& worker, std::int64_t first_row, std::int64_t first_column) {
    const std::int64_t n = state.lists.n();
    const bool one = first_row == first_column;
    const int rows = int(std::min<std::int64_t>(kTile, n - first_row));
    const int columns = int(std::min<std::int64_t>(kTile, n - first_column));
    std::int32_t* const ids = worker.ids.data();  // of the rows, and from kTile on of the columns
    std::int32_t* const of_columns = one ? ids : ids + kTile;
    const int offset = int(of_columns - ids);
    std::iota(ids, ids + rows, std::int32_t(first_row));
    if (!one) std::iota(of_columns, of_columns + columns, std::int32_t(first_column));
    for (int j = 0; j < columns; ++j) worker.bounds[j] = state.lists.bound(of_columns[j]);
    if (one)
        worker.block.compute_triangle(ids, rows, rows);
    else
        worker.block.compute(ids, rows, of_columns, columns);
    worker.offers.counters.distances += one ? rows * (rows - 1) / 2 : rows * columns;
    for (int i = 0; i < rows; ++i) {
        const float* row = worker.block.row(i);
        const float bound = state.lists.bound(ids[i]);
        const int hits =
            state.space.kernels.within(row, one ? i + 1 : 0, columns, bound, worker.bounds.data(), worker.hits.data());
        for (int h = 0; h < hits; ++h) {
            const int j = worker.hits[h];
            if (row[j] <= bound) worker.offers.add(state.lists, ids, i, of_columns[j], row[j]);
            if (row[j] <= worker.bounds[j]) worker.offers.add(state.lists, ids, offset + j, ids[i], row[j]);
        }
    }
    worker.offers.flush_all(state.lists, ids, offset + columns);
}

}  // namespace

void compare_all(State& state) {
    const std::int64_t n = state.lists.n(), tiles = (n + kTile - 1) / kTile;
    state.size_blocks(kTile, kTile);
    for (Worker& worker : state.workers) {
        worker.offers.resize(2 * kTile);
        worker.ids.resize(2 * kTile);
        worker.bounds.resize(kTile);
        worker.hits.resize(kTile + kSpareHits);
    }
    state.team.for_chunks(n, 1024, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) state.lists.start_last_round(i);
    });
    // The upper triangle of tiles, folded so that every line has the same number of them: line l holds those of row l
    // and of row tiles - 1 - l.
    const std::int64_t width = tiles + 1, lines = (tiles + 1) / 2;
    state.team.for_chunks(lines * width, 1, [&](int thread, std::int64_t c, std::int64_t) {
        const std::int64_t line = c / width, place = c % width;
        const std::int64_t row = place < tiles - line ? line : tiles - 1 - line;
        if (place >= tiles - line && row == line) return;  // the middle line of an odd number meets itself
        const std::int64_t column = row == line ? line + place : row + place - (tiles - line);
        if (!are_known(state.pairs, row * kTile, column * kTile))
            join_tiles(state, state.workers[thread], row * kTile, column * kTile);
    });
}

}  // namespace gnnd::cpu
