// SPDX-License-Identifier: MIT
#pragma once
/// \file order.h
/// The order of a base whose shards are parts of the space, in two passes over it.

#include <cstdint>
#include <functional>
#include <string>

#include "gnnd/io/vector_reader.h"
#include "gnnd/shards/manifest.h"

namespace gnnd::shards {

/// Sorts the base by a Partition of several cells a shard, cut into shards of the sizes that the manifest says: a cell
/// may lie in two, and one of equal rows in many. Within a shard objects are in the order of the base, so that what is
/// found for them goes back in streams, too.
/// \param vectors    file to write: the vectors in that order
/// \param order      file to write, n x 1 of i32: for each place the row of the base
/// \param params     of these metric, seed and threads matter
/// \param interrupt  asked often; true ends the call, and neither file is there
/// \throws Interrupted, IoError, and InvalidArgument that names the first row that the metric cannot work with
void order_base(const io::VectorReader& base, const Manifest& manifest, const BuildParams& params,
                const std::string& vectors, const std::string& order, const std::function<bool()>& interrupt);

/// Most host memory that it takes.
std::uint64_t order_bytes(const Manifest& manifest);

}  // namespace gnnd::shards
