// SPDX-License-Identifier: MIT
#pragma once
/// \file restore.h
/// From the lists of shards in an order of their own to rows and ids of the base.

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "gnnd/io/graph_file.h"
#include "gnnd/shards/folder.h"

namespace gnnd::shards {

/// Writes the results that are not there yet, each durable before the next one is begun. Every shard's lists have their
/// rows in the order of the base, so that what a result needs of them is read in one piece.
/// \param threads    0: all
/// \param interrupt  asked often; true ends the call
/// \throws Interrupted, IoError
void restore(Folder& folder, int threads, const std::function<bool()>& interrupt);

/// The order of a base, and the lists of its shards.
struct Ordered {
    /// For each place the row of the base, ascending within a shard.
    std::variant<const std::int32_t*, const std::int64_t*> order;
    std::string name;  ///< of the order, for messages
    std::function<io::GraphFile(int shard)> open_lists;
};
/// Makes one result: as many rows of the base as the shard of its number has, from begin() on.
/// \param ids, distances  rows x k
/// \throws as restore()
template <class Id>
void restore_rows(const Ordered& ordered, const Manifest& manifest, int result, Id* ids, float* distances, int threads,
                  const std::function<bool()>& interrupt);

}  // namespace gnnd::shards
