// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/graph_blocks.h"

#include <xxhash.h>

#include <algorithm>

#include "gnnd/vectors.h"

namespace gnnd::io::detail {

namespace {

constexpr std::int64_t kBlockBytes = 1 << 20;

}  // namespace

std::uint64_t checksum_of(const std::vector<std::uint64_t>& table) {
    return XXH3_64bits(table.data(), table.size() * sizeof(std::uint64_t));
}

std::int64_t most_objects(std::size_t id_bytes) {
    return id_bytes == sizeof(std::int64_t) ? kMaxShardedObjects : kMaxObjects;
}

template <class Id>
std::uint64_t checksum_of(const Id* ids, const float* distances, std::int64_t entries) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, ids, std::size_t(entries) * sizeof *ids);
    XXH3_64bits_update(&state, distances, std::size_t(entries) * sizeof *distances);
    return XXH3_64bits_digest(&state);
}

std::int64_t block_rows_for(std::int64_t k, std::size_t id_bytes) {
    return std::max<std::int64_t>(1, kBlockBytes / (k * std::int64_t(entry_bytes(id_bytes))));
}

std::int64_t blocks_of(std::int64_t n, std::int64_t block_rows) {
    return n / block_rows + (n % block_rows != 0);
}

std::string allowed_range(std::int64_t most) {
    return ", expected 1 to " + std::to_string(most);
}

template <class Id>
std::int64_t find_bad_id(const Id* ids, std::int64_t entries, std::int64_t objects) {
    return std::find_if(ids, ids + entries, [objects](Id id) { return id < -1 || id >= objects; }) - ids;
}

std::string bad_id(std::int64_t row, std::int64_t id, std::int64_t objects) {
    return "row " + std::to_string(row) + " holds id " + std::to_string(id) + ", expected -1 to " +
           std::to_string(objects - 1);
}

template std::uint64_t checksum_of(const std::int32_t*, const float*, std::int64_t);
template std::uint64_t checksum_of(const std::int64_t*, const float*, std::int64_t);
template std::int64_t find_bad_id(const std::int32_t*, std::int64_t, std::int64_t);
template std::int64_t find_bad_id(const std::int64_t*, std::int64_t, std::int64_t);

}  // namespace gnnd::io::detail
