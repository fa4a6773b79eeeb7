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
inline constexpr std::size_t kEntryBytes = sizeof(std::int32_t) + sizeof(float);

std::uint64_t checksum_of(const std::vector<std::uint64_t>& table);
/// Of a block: its ids, and behind them its distances, `entries` of each.
std::uint64_t checksum_of(const std::int32_t* ids, const float* distances, std::int64_t entries);

/// Rows of a block of about a megabyte, at least one.
std::int64_t block_rows_for(std::int64_t k);
/// The blocks of n rows.
std::int64_t blocks_of(std::int64_t n, std::int64_t block_rows);

/// The first entry of these that is neither -1 nor an object, or `entries`.
std::int64_t find_bad_id(const std::int32_t* ids, std::int64_t entries, std::int64_t objects);

/// ", expected 1 to `most`", and the same of an id, for messages.
std::string allowed_range(std::int64_t most);
std::string bad_id(std::int64_t row, std::int32_t id, std::int64_t objects);

}  // namespace gnnd::io::detail
