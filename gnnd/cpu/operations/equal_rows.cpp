// SPDX-License-Identifier: MIT
// Rows that are equal to the bit: those of equal hash lie side by side after sorting, and are compared.
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "gnnd/cpu/operations/edges.h"
#include "gnnd/detail/checks.h"

namespace gnnd {
namespace {

using Hashed = std::pair<std::uint64_t, std::int32_t>;  ///< a row's hash and number

constexpr int kBucketBits = 8;
constexpr std::size_t kBuckets = std::size_t(1) << kBucketBits;

std::size_t bucket_of(std::uint64_t hash) {
    return std::size_t(hash >> (64 - kBucketBits));
}

/// The rows by the first bits of their hashes. \param ends  filled with where each bucket ends
Array<Hashed> in_buckets(const Array<std::uint64_t>& hashes, std::array<std::size_t, kBuckets>& ends) {
    ends = {};
    for (const std::uint64_t hash : hashes) ++ends[bucket_of(hash)];
    std::size_t begin = 0;
    for (std::size_t& end : ends) begin += std::exchange(end, begin);
    Array<Hashed> rows(hashes.size());
    for (std::size_t i = 0; i < hashes.size(); ++i) rows[ends[bucket_of(hashes[i])]++] = {hashes[i], std::int32_t(i)};
    return rows;
}

}  // namespace

Array<std::int32_t> equal_rows(const VectorView& vectors, int threads, const Callbacks& callbacks) {
    const cpu::Team team = cpu::team_of(threads, &callbacks.interrupt);
    Array<std::int32_t> equal;
    if (vectors.n == 0) return equal;
    detail::check_shape(vectors, 1);
    detail::check_reach({Device::Kind::cpu, 0}, {vectors.data});
    const std::size_t bytes = std::size_t(vectors.d) * size_of(vectors.dtype);
    Array<std::uint64_t> hashes(std::size_t(vectors.n));
    team.for_chunks(vectors.n, cpu::kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) hashes[std::size_t(i)] = XXH3_64bits(vectors.row(i), bytes);
    });
    std::array<std::size_t, kBuckets> ends{};
    Array<Hashed> rows = in_buckets(hashes, ends);
    equal.resize(std::size_t(vectors.n));
    team.for_chunks(std::int64_t(kBuckets), 1, [&](int, std::int64_t bucket, std::int64_t) {
        const auto begin = rows.begin() + std::ptrdiff_t(bucket == 0 ? 0 : ends[std::size_t(bucket) - 1]);
        const auto end = rows.begin() + std::ptrdiff_t(ends[std::size_t(bucket)]);
        std::sort(begin, end);
        std::vector<std::int32_t> firsts;  // of the rows of one hash: more than one where that is chance
        for (auto row = begin; row != end; ++row) {
            if (row == begin || row->first != std::prev(row)->first) firsts.clear();
            const auto first = std::find_if(firsts.begin(), firsts.end(), [&](std::int32_t other) {
                return std::memcmp(vectors.row(other), vectors.row(row->second), bytes) == 0;
            });
            equal[std::size_t(row->second)] = first == firsts.end() ? row->second : *first;
            if (first == firsts.end()) firsts.push_back(row->second);
        }
    });
    return equal;
}

}  // namespace gnnd
