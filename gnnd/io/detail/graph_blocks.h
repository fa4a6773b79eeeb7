// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_blocks.h
/// The rows of a graph file in blocks, each with a checksum, and the checks that reader and writer share.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gnnd::io::detail {

/// Bytes of an id and its distance.
inline std::size_t entry_bytes(std::size_t id_bytes) {
    return id_bytes + sizeof(float);
}

/// Most objects that ids of so many bytes are of.
std::int64_t most_objects(std::size_t id_bytes);

std::uint64_t checksum_of(const std::vector<std::uint64_t>& table);
/// Of a block: its ids, and behind them its distances, `entries` of each.
template <class Id>
std::uint64_t checksum_of(const Id* ids, const float* distances, std::int64_t entries);

/// Rows of a block of about a megabyte, at least one.
std::int64_t block_rows_for(std::int64_t k, std::size_t id_bytes);
/// The blocks of n rows.
std::int64_t blocks_of(std::int64_t n, std::int64_t block_rows);

/// The first entry of these that is neither -1 nor an object, or `entries`.
template <class Id>
std::int64_t find_bad_id(const Id* ids, std::int64_t entries, std::int64_t objects);

/// ", expected 1 to `most`", and the same of an id, for messages.
std::string allowed_range(std::int64_t most);
std::string bad_id(std::int64_t row, std::int64_t id, std::int64_t objects);

}  // namespace gnnd::io::detail
