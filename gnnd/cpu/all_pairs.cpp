// SPDX-License-Identifier: MIT
// All pairs of objects, each compared once.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "gnnd/cpu/codes.h"
#include "gnnd/cpu/steps.h"
#include "gnnd/detail/fits.h"

namespace gnnd::cpu {
namespace {

/// The pairs of tiles that are to be compared, by their numbers. Those with pairs across the border are told apart from
/// all others, not looked for among them: of few objects and very many others that would take longer than to compare.
class TilePairs {
  public:
    TilePairs(std::int64_t n, const detail::Pairs& pairs) : tiles_((n + kTile - 1) / kTile), across_(!pairs.all()) {
        if (!across_) return;
        behind_ = std::int64_t(pairs.border) / kTile;
        before_ = (std::int64_t(pairs.border) + kTile - 1) / kTile;
    }

    std::int64_t count() const { return across_ ? before_ * (tiles_ - behind_) : (tiles_ + 1) / 2 * (tiles_ + 1); }
    /// \return row and column; a row behind its column stands for no pair
    std::pair<std::int64_t, std::int64_t> at(std::int64_t number) const {
        if (across_) return {number / (tiles_ - behind_), behind_ + number % (tiles_ - behind_)};
        // The upper triangle of tiles, folded so that every line has the same number of them: line l holds those of row
        // l and of row tiles - 1 - l. The middle line of an odd number meets itself.
        const std::int64_t line = number / (tiles_ + 1), place = number % (tiles_ + 1), second = tiles_ - 1 - line;
        if (place < tiles_ - line) return {line, line + place};
        return {second, second == line ? second - 1 : second + place - (tiles_ - line)};
    }

  private:
    std::int64_t tiles_;
    bool across_;
    std::int64_t before_ = 0, behind_ = 0;  ///< tiles with objects before the border, and the first with some behind it
};

/// Two tiles of objects; both may be the same one.
struct Tiles {
    const std::int32_t *rows, *columns;
    int row_count, column_count;
    int offset;  ///< of the columns' places among the objects that offers are made to
    bool one() const { return rows == columns; }
    std::int64_t pairs() const {
        return one() ? std::int64_t(row_count) * (row_count - 1) / 2 : std::int64_t(row_count) * column_count;
    }
    int first_column(int row) const { return one() ? row + 1 : 0; }
};

void compute(Block& block, const Tiles& tiles) {
    if (tiles.one())
        block.compute_triangle(tiles.rows, tiles.row_count, tiles.row_count);
    else
        block.compute(tiles.rows, tiles.row_count, tiles.columns, tiles.column_count);
}

/// Offers the objects of a pair to each other, as far as their bounds allow.
void offer(State& state, Worker& worker, const Tiles& tiles, int i, int j, float key, float bound) {
    const std::int32_t* ids = worker.ids.data();
    if (key <= bound) worker.offers.add(state.lists, ids, i, tiles.columns[j], key);
    if (key <= worker.bounds[j]) worker.offers.add(state.lists, ids, tiles.offset + j, tiles.rows[i], key);
}

void join(State& state, Worker& worker, const Tiles& tiles) {
    compute(worker.block, tiles);
    for (int i = 0; i < tiles.row_count; ++i) {
        const float* row = worker.block.row(i);
        const float bound = state.lists.bound(tiles.rows[i]);
        const int hits = state.space.kernels.within(row, tiles.first_column(i), tiles.column_count, bound,
                                                    worker.bounds.data(), worker.hits.data());
        for (int h = 0; h < hits; ++h) offer(state, worker, tiles, i, worker.hits[h], row[worker.hits[h]], bound);
    }
}

/// A thread's memory for comparing codes first.
struct Sieve {
    Block block;
    PairBlock pairs;
    std::vector<float> reaches, bounds;
    std::vector<std::int32_t> rows, columns, row_ids, column_ids;
    int skips = 0;  ///< tiles that are not worth trying
};

/// Of so many pairs in a tile one may be left by the codes; where it is more, as long as lists are short or where codes
/// tell little, rows are compared, in the next few tiles at once.
constexpr int kLeftOf = 16, kSkips = 4;

/// The same by codes; pairs that may be near by these are computed from the rows. \return false where there are too
/// many
bool join_by_codes(State& state, Worker& worker, const CodedRows& codes, Sieve& sieve, const Tiles& tiles) {
    if (sieve.skips > 0) return --sieve.skips, false;
    compute(sieve.block, tiles);
    const CodedRows::Extent of_rows = codes.extent(tiles.rows, tiles.row_count);
    const CodedRows::Extent of_columns = codes.extent(tiles.columns, tiles.column_count);
    for (int j = 0; j < tiles.column_count; ++j)
        sieve.reaches[j] = codes.reach(tiles.columns[j], worker.bounds[j], of_rows);
    std::int64_t left = tiles.pairs() / kLeftOf;
    sieve.rows.clear();
    sieve.columns.clear();
    for (int i = 0; i < tiles.row_count; ++i) {
        sieve.bounds[i] = state.lists.bound(tiles.rows[i]);
        const float reach = codes.reach(tiles.rows[i], sieve.bounds[i], of_columns);
        const int hits = state.space.kernels.within(sieve.block.row(i), tiles.first_column(i), tiles.column_count,
                                                    reach, sieve.reaches.data(), worker.hits.data());
        if ((left -= hits) < 0) return sieve.skips = kSkips, false;
        sieve.rows.insert(sieve.rows.end(), hits, i);
        sieve.columns.insert(sieve.columns.end(), worker.hits.begin(), worker.hits.begin() + hits);
    }
    const int all = int(sieve.rows.size());
    for (int first = 0; first < all; first += kPairsAtOnce) {
        const int count = std::min(kPairsAtOnce, all - first);
        const std::int32_t *rows = sieve.rows.data() + first, *columns = sieve.columns.data() + first;
        for (int p = 0; p < count; ++p) {
            sieve.row_ids[p] = tiles.rows[rows[p]];
            sieve.column_ids[p] = tiles.columns[columns[p]];
        }
        sieve.pairs.compute(sieve.row_ids.data(), sieve.column_ids.data(), count);
        for (int p = 0; p < count; ++p)
            offer(state, worker, tiles, rows[p], columns[p], sieve.pairs.keys()[p], sieve.bounds[rows[p]]);
    }
    return true;
}

/// Offers the objects of two tiles to each other, or those of one among themselves.
void join_tiles(State& state, Worker& worker, const CodedRows* codes, Sieve* sieve, std::int64_t first_row,
                std::int64_t first_column) {
    const std::int64_t n = state.lists.n();
    const bool one = first_row == first_column;
    std::int32_t* const ids = worker.ids.data();  // of the rows, and from kTile on of the columns
    Tiles tiles{ids, one ? ids : ids + kTile, int(std::min<std::int64_t>(kTile, n - first_row)),
                int(std::min<std::int64_t>(kTile, n - first_column)), one ? 0 : kTile};
    std::iota(ids, ids + tiles.row_count, std::int32_t(first_row));
    if (!one) std::iota(ids + kTile, ids + kTile + tiles.column_count, std::int32_t(first_column));
    for (int j = 0; j < tiles.column_count; ++j) worker.bounds[j] = state.lists.bound(tiles.columns[j]);
    worker.offers.counters.distances += tiles.pairs();
    if (codes == nullptr || !join_by_codes(state, worker, *codes, *sieve, tiles)) join(state, worker, tiles);
    worker.offers.flush_all(state.lists, ids, tiles.offset + tiles.column_count);
}

/// Codes of the objects where they pay and the memory holds them.
std::optional<CodedRows> encode(const State& state) {
    const VectorView& vectors = state.space.vectors;
    std::optional<CodedRows> codes;
    if (!CodedRows::pay(state.space.metric, vectors.dtype, vectors.d)) return codes;
    detail::fits([&] { codes.emplace(state.space, state.team, state.resources); });
    return codes;
}

}  // namespace

void compare_all(State& state) {
    const std::int64_t n = state.lists.n();
    state.size_blocks(kTile, kTile);
    for (Worker& worker : state.workers) {
        worker.offers.resize(2 * kTile);
        worker.ids.resize(2 * kTile);
        worker.bounds.resize(kTile);
        worker.hits.resize(kTile + kSpareHits);
    }
    const std::optional<CodedRows> codes = encode(state);
    std::vector<Sieve> sieves(codes ? state.workers.size() : 0);
    for (Sieve& sieve : sieves) {
        sieve.block = Block(codes->space(), kTile, kTile, state.resources);
        sieve.pairs = PairBlock(state.space, kPairsAtOnce, state.resources);
        sieve.reaches.resize(kTile);
        sieve.bounds.resize(kTile);
        sieve.row_ids.resize(kPairsAtOnce);
        sieve.column_ids.resize(kPairsAtOnce);
    }
    state.team.for_chunks(n, 1024, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) state.lists.start_last_round(i);
    });
    const TilePairs pairs(n, state.pairs);
    state.team.for_chunks(pairs.count(), 1, [&](int thread, std::int64_t c, std::int64_t) {
        const auto [row, column] = pairs.at(c);
        if (row <= column)
            join_tiles(state, state.workers[thread], codes ? &*codes : nullptr, codes ? &sieves[thread] : nullptr,
                       row * kTile, column * kTile);
    });
}

}  // namespace gnnd::cpu
