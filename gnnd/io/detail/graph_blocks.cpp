// SPDX-License-Identifier: MIT
#include "gnnd/io/detail/graph_blocks.h"

#include <xxhash.h>

#include <algorithm>

namespace gnnd::io::detail {

namespace {

constexpr std::int64_t kBlockBytes = 1 << 20;

}  // namespace

std::uint64_t checksum_of(const std::vector<std::uint64_t>& table) {
    return XXH3_64bits(table.data(), table.size() * sizeof(std::uint64_t));
}

std::uint64_t checksum_of(const std::int32_t* ids, const float* distances, std::int64_t entries) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, ids, std::size_t(entries) * sizeof *ids);
    XXH3_64bits_update(&state, distances, std::size_t(entries) * sizeof *distances);
    return XXH3_64bits_digest(&state);
}

std::int64_t block_rows_for(std::int64_t k) {
    return std::max<std::int64_t>(1, kBlockBytes / (k * std::int64_t(kEntryBytes)));
}

std::int64_t blocks_of(std::int64_t n, std::int64_t block_rows) {
    return n / block_rows + (n % block_rows != 0);
}

std::string allowed_range(std::int64_t most) {
    return ", expected 1 to " + std::to_string(most);
}

std::int64_t find_bad_id(const std::int32_t* ids, std::int64_t entries, std::int64_t objects) {
    return std::find_if(ids, ids + entries, [objects](std::int32_t id) { return id < -1 || id >= objects; }) - ids;
}

std::string bad_id(std::int64_t row, std::int32_t id, std::int64_t objects) {
    return "row " + std::to_string(row) + " holds id " + std::to_string(id) + ", expected -1 to " +
           std::to_string(objects - 1);
}

}  // namespace gnnd::io::detail
