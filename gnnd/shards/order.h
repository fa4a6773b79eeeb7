// SPDX-License-Identifier: MIT
#pragma once
/// \file order.h
/// The order of a base whose shards are parts of the space, in two passes over it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gnnd/io/vector_reader.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/partition.h"

namespace gnnd::shards {

/// Sorts the base by a Partition of several cells a shard, cut into shards of the sizes that the manifest says: a cell
/// may lie in two, and one of equal rows in many. Within a shard objects are in the order of the base, so that what is
/// found for them goes back in streams, too.
/// \param vectors    file to write: the vectors in that order
/// \param order      file to write, of i32: for each place the row of the base, n x 1, or where ids have 64 bits their
///                   halves, n x 2
/// \param params     of these metric, seed and threads matter
/// \param interrupt  asked often; true ends the call, and neither file is there
/// \throws Interrupted, IoError, and InvalidArgument that names the first row that the metric cannot work with
void order_base(const io::VectorReader& base, const Manifest& manifest, const BuildParams& params,
                const std::string& vectors, const std::string& order, const std::function<bool()>& interrupt);

/// Most host memory that it takes.
std::uint64_t order_bytes(const Manifest& manifest);

/// The rows of the base that the partition is made of, ascending. This and what follows are the steps of order_base(),
/// for processes that share them.
std::vector<std::int64_t> order_sample(const Manifest& manifest, const BuildParams& params);
/// \param sample  these rows
Partition make_partition(const Manifest& manifest, const VectorView& sample, const BuildParams& params,
                         const cpu::Team& team);
/// The shards of rows of the base.
/// \param cells         of rows that follow each other in the base
/// \param next_in_cell  for each cell the place of its next row, which moves on
/// \param shards        so many of them
void find_shards(const Manifest& manifest, const std::uint16_t* cells, std::int64_t count,
                 std::vector<std::int64_t>& next_in_cell, std::int32_t* shards);

}  // namespace gnnd::shards
