// SPDX-License-Identifier: MIT
#include "gnnd/cpu/operations/join.h"

#include <bit>

namespace gnnd::cpu {
namespace {

/// Entries of a bucket, about, so that it stays in a core's cache while it is sorted, and the most buckets that a
/// thread writes to at a time.
constexpr std::int64_t kBucketEntries = 1 << 15, kMostBuckets = 2048;

}  // namespace

Buckets::Buckets(const Edges& edges, const Team& team) {
    const std::int64_t wanted =
        std::clamp(edges.n * edges.columns / kBucketEntries, std::int64_t(1), std::min(edges.n, kMostBuckets));
    shift = int(std::bit_width(std::uint64_t((edges.n + wanted - 1) / wanted - 1)));
    count = ((edges.n - 1) >> shift) + 1;
    // Blocks of rows in order, each with its own places in every bucket. How many there are makes no difference to the
    // result.
    const std::int64_t most_blocks = 4 * std::int64_t(team.threads);
    const std::int64_t block_rows = std::max(kRowsAtOnce, (edges.n + most_blocks - 1) / most_blocks);
    const std::int64_t blocks = (edges.n + block_rows - 1) / block_rows;
    std::vector<std::int64_t> places(std::size_t(blocks * count));
    team.for_chunks(edges.n, block_rows, [&](int, std::int64_t begin, std::int64_t end) {
        std::int64_t* sizes = &places[std::size_t(begin / block_rows * count)];
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t j = 0; j < edges.columns; ++j) {
                const std::int32_t id = edges.ids_of(i)[j];
                if (edges.counts(id, edges.values_of(i)[j])) ++sizes[id >> shift];
            }
    });
    begins.resize(std::size_t(count) + 1);
    std::int64_t total = 0;
    for (std::int64_t bucket = 0; bucket < count; ++bucket) {
        begins[std::size_t(bucket)] = total;
        for (std::int64_t block = 0; block < blocks; ++block) {
            const std::int64_t size = places[std::size_t(block * count + bucket)];
            places[std::size_t(block * count + bucket)] = total;
            total += size;
        }
    }
    begins[std::size_t(count)] = total;
    entries.resize(std::size_t(total));
    team.for_chunks(edges.n, block_rows, [&](int, std::int64_t begin, std::int64_t end) {
        std::int64_t* at = &places[std::size_t(begin / block_rows * count)];
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t j = 0; j < edges.columns; ++j) {
                const std::int32_t id = edges.ids_of(i)[j];
                const float value = edges.values_of(i)[j];
                if (edges.counts(id, value)) entries[std::size_t(at[id >> shift]++)] = {id, std::int32_t(i), value};
            }
    });
}

void JoinScratch::load(const Edges& edges, const Buckets& buckets, std::int64_t bucket) {
    const std::int64_t first_row = bucket << buckets.shift;
    const std::int64_t rows = std::min(std::int64_t(1) << buckets.shift, edges.n - first_row);
    const Reverse* begin = buckets.entries.data() + buckets.begins[std::size_t(bucket)];
    const Reverse* end = buckets.entries.data() + buckets.begins[std::size_t(bucket) + 1];
    const std::size_t most = std::size_t(end - begin + rows * edges.columns);
    if (ids.size() < most) ids.resize(most), values.resize(most);
    if (reverse.size() < std::size_t(end - begin)) reverse.resize(std::size_t(end - begin));
    own.resize(std::size_t(edges.columns) + 1);  // a place more, for an entry that does not count
    sizes.resize(std::size_t(rows));
    begins.assign(std::size_t(rows) + 2, 0);
    // Shifted by one, so that the cursors of the second pass become the beginnings.
    for (const Reverse* entry = begin; entry != end; ++entry) ++begins[std::size_t(entry->row - first_row) + 2];
    for (std::int64_t r = 2; r <= rows; ++r) begins[std::size_t(r)] += begins[std::size_t(r) - 1];
    for (const Reverse* entry = begin; entry != end; ++entry)
        reverse[std::size_t(begins[std::size_t(entry->row - first_row) + 1]++)] = make_key(entry->column, entry->value);
}

}  // namespace gnnd::cpu
