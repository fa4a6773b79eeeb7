// SPDX-License-Identifier: MIT
#pragma once
/// \file insert.h
/// append() by searching, on the CPU.

#include <cstdint>

#include "gnnd/builder.h"
#include "gnnd/cpu/space.h"
#include "gnnd/detail/append_rows.h"
#include "gnnd/detail/input.h"

namespace gnnd::cpu {

/// Of each query the k nearest among `others` but itself; row i of ids and distances, count x k, belongs to queries[i].
/// \param others  ids, none twice; null: all objects below other_count
void nearest_among(const Space& space, const Team& team, const std::int32_t* queries, std::int64_t count,
                   const std::int32_t* others, std::int64_t other_count, int k, Resources& resources, std::int32_t* ids,
                   float* distances);
KnnGraph nearest_among(const Space& space, const Team& team, const std::int32_t* queries, std::int64_t count,
                       const std::int32_t* others, std::int64_t other_count, int k, Resources& resources);
/// Rows and columns of the blocks that it compares.
inline constexpr int kQueries = 32, kColumns = 128;

/// Objects that are searched for before their rows are offered to others.
inline constexpr std::int64_t kInsertBatch = detail::kMostAppended;

/// See detail/insert.h.
/// \param space  of both sets, one behind the other
/// \param stats  gets a record a batch
/// \param ids, distances  the graph of all, n x k each
void insert(const Space& space, const detail::Input& input, const BuildParams& params, const Team& team,
            const Callbacks& callbacks, Resources& resources, BuildStats& stats, std::int32_t* ids, float* distances);

/// The same as what changes, of at most kInsertBatch added vectors and a graph of params.k columns, all filled.
detail::AppendedRows insert_rows(const Space& space, const detail::Input& input, const BuildParams& params,
                                 const Team& team, const Callbacks& callbacks, Resources& resources);

}  // namespace gnnd::cpu
