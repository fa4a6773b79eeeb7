// SPDX-License-Identifier: MIT
#pragma once
/// \file ids.h
/// The width of ids over the whole set. Builds and merges work with the numbers of a shard's own objects, or of a
/// pair's, which are of 32 bits; only lists hold ids of the whole set.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gnnd/vectors.h"

namespace gnnd::shards {

/// Bytes of an id that are enough for so many objects.
inline int id_bytes_for(std::int64_t n) {
    return int(n <= kMaxObjects ? sizeof(std::int32_t) : sizeof(std::int64_t));
}

/// Calls f with a zero of the type that ids of so many bytes are of.
template <class F>
void with_id_type(int bytes, const F& f) {
    if (bytes == int(sizeof(std::int32_t)))
        f(std::int32_t{});
    else
        f(std::int64_t{});
}

/// Rows of the two largest of so many shards, or of the only one: what a graph on one device must hold.
inline std::int64_t most_rows_at_once(std::int64_t n, int shards) {
    return std::min(n, 2 * ((n + shards - 1) / shards));
}

}  // namespace gnnd::shards
