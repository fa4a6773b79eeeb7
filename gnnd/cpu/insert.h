#pragma once
/// \file insert.h
/// append() by searching, on the CPU.

#include <cstdint>

#include "gnnd/builder.h"
#include "gnnd/cpu/space.h"
#include "gnnd/detail/input.h"

namespace gnnd::cpu {

/// Of each query the k nearest among `others` but itself; row i belongs to queries[i].
/// \param others  ids, none twice; null: all objects below other_count
KnnGraph nearest_among(const Space& space, const Team& team, const std::int32_t* queries, std::int64_t count,
                       const std::int32_t* others, std::int64_t other_count, int k, Resources& resources);

/// See detail/insert.h.
/// \param space  of both sets, one behind the other
/// \param stats  gets a record a batch
KnnGraph insert(const Space& space, const detail::Input& input, const BuildParams& params, const Team& team,
                const Callbacks& callbacks, Resources& resources, BuildStats& stats);

}  // namespace gnnd::cpu
