// SPDX-License-Identifier: MIT
#pragma once
/// \file join.h
/// Both directions of a graph's entries in one symmetric matrix.
///
/// Every entry (i, j) is written a second time, for row j, into the bucket of some thousand rows that j is in: threads
/// count first what each of them will write where, and then write without a lock. A bucket fits the cache. There its
/// entries are sorted by row (their columns ascend by themselves, since rows were read in order), and each row is
/// merged with the row's own entries. Memory is read and written in streams, whatever the ids are.

#include <cstdint>
#include <exception>
#include <vector>

#include "gnnd/cpu/operations/rows.h"
#include "gnnd/detail/join_rules.h"

namespace gnnd::cpu {

/// An entry of row `row` that stands in row `column` of the graph.
struct Reverse {
    std::int32_t row, column;
    float value;
};

/// The reverse entries of all rows, by buckets of 2^shift rows.
struct Buckets {
    int shift = 0;
    std::int64_t count = 0;
    std::vector<std::int64_t> begins;  ///< count + 1
    Array<Reverse> entries;

    Buckets(const Edges& edges, const Team& team);
};

/// Merges two rows of ascending ids. Which of both is next cannot be foreseen, so there is no branch on it.
/// \param rule  see join_rules.h
/// \return how many
template <class Rule>
std::int64_t merge_rows(const Key* a, const Key* a_end, const Key* b, const Key* b_end, const Rule& rule,
                        std::int32_t* ids, float* values) {
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    std::int64_t count = 0;
    while (a != a_end && b != b_end) {
        const std::int32_t of_a = id_of(*a), of_b = id_of(*b);
        const bool from_a = of_a <= of_b, from_b = of_b <= of_a, same = from_a && from_b;
        const Key first = *b ^ ((*a ^ *b) & (Key(0) - Key(from_a)));
        const std::uint32_t alone = bits(rule.one(value_of(first)));
        const std::uint32_t joined = bits(rule.both(value_of(*a), value_of(*b)));
        const float value = std::bit_cast<float>(alone ^ ((alone ^ joined) & (0U - std::uint32_t(same))));
        ids[count] = id_of(first);
        values[count] = value;
        count += int((Rule::keeps_one || same) & rule.keeps(value));
        a += int(from_a);
        b += int(from_b);
    }
    if (!Rule::keeps_one) return count;
    const auto rest = [&](const Key* begin, const Key* end) {
        for (const Key* key = begin; key != end; ++key) {
            ids[count] = id_of(*key);
            values[count] = rule.one(value_of(*key));
            count += int(rule.keeps(values[count]));
        }
    };
    rest(a, a_end);
    rest(b, b_end);
    return count;
}

/// A thread's memory for a bucket.
struct JoinScratch {
    std::vector<std::int64_t> begins;
    std::vector<Key> reverse, own;
    std::vector<std::int32_t> ids;
    std::vector<float> values;
    std::vector<std::int64_t> sizes;
    std::int64_t count = 0;  ///< entries of the bucket's rows of the result
    std::int64_t place = 0;  ///< of the first of them in it

    /// Makes room, and sorts the bucket's entries into `reverse`: row r's are begins[r] to begins[r + 1].
    void load(const Edges& edges, const Buckets& buckets, std::int64_t bucket);
};

/// The matrix of both directions by the rule of join_rules.h.
template <class Rule>
CsrGraph join_directions(const Edges& edges, const Rule& rule, const Team& team) {
    CsrGraph joined;
    joined.n = edges.n;
    joined.indptr.resize(std::size_t(edges.n) + 1);
    joined.indptr[0] = 0;
    if (edges.n == 0) return joined;
    const Buckets buckets(edges, team);
    // Room for all that there may be: what is not needed stays untouched.
    const std::size_t most = buckets.entries.size() * (Rule::keeps_one ? 2 : 1);
    joined.indices.resize(most);
    joined.values.resize(most);
    std::vector<JoinScratch> scratch(std::size_t(team.threads));
    std::int64_t done = 0;
    const std::int64_t rows_of_one = std::int64_t(1) << buckets.shift;
    team.for_ordered(
        buckets.count,
        [&](int thread, std::int64_t bucket) {
            JoinScratch& s = scratch[std::size_t(thread)];
            s.load(edges, buckets, bucket);
            const std::int64_t begin = bucket * rows_of_one, rows = std::min(rows_of_one, edges.n - begin);
            s.count = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                const int own = sorted_row(edges, begin + r, s.own.data());
                const Key* reverse = s.reverse.data();
                s.sizes[r] =
                    merge_rows(s.own.data(), s.own.data() + own, reverse + s.begins[r], reverse + s.begins[r + 1], rule,
                               s.ids.data() + s.count, s.values.data() + s.count);
                s.count += s.sizes[r];
            }
        },
        [&](int thread, std::int64_t) {
            JoinScratch& s = scratch[std::size_t(thread)];
            s.place = done;
            done += s.count;
        },
        [&](int thread, std::int64_t bucket) {
            const JoinScratch& s = scratch[std::size_t(thread)];
            const std::int64_t begin = bucket * rows_of_one, rows = std::min(rows_of_one, edges.n - begin);
            std::copy_n(s.ids.data(), s.count, joined.indices.data() + s.place);
            std::copy_n(s.values.data(), s.count, joined.values.data() + s.place);
            std::int64_t end = s.place;
            for (std::int64_t r = 0; r < rows; ++r) joined.indptr[begin + r + 1] = end += s.sizes[r];
        });
    joined.indices.resize(std::size_t(done));
    joined.values.resize(std::size_t(done));
    return joined;
}

using detail::Nearer;

}  // namespace gnnd::cpu
