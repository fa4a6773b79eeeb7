// SPDX-License-Identifier: MIT
#pragma once
/// \file edges.h
/// The entries of a k-NN graph that an operation counts, in host memory.

#include <cstdint>
#include <span>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/edges.h"

namespace gnnd::cpu {

/// Rows that a thread takes at a time.
inline constexpr std::int64_t kRowsAtOnce = 2048;

/// \param threads  0: all. \throws InvalidArgument
Team team_of(int threads, const std::function<bool()>* interrupt);

using detail::Edges;

/// The same, and the values where they are not the graph's own.
struct OwnedEdges {
    Edges edges;
    Array<float> values;
};

/// All entries of the first columns with the graph's own values. Checks the rows, as operations.h promises.
/// \throws InvalidArgument that names the first bad row
Edges checked_edges(const char* who, const KnnGraphView& graph, int neighbors, const Team& team);

/// As the parameters say.
/// \throws InvalidArgument for these, too
OwnedEdges edges_of(const char* who, const KnnGraphView& graph, const EdgeParams& params, const Team& team);

/// Values as true distances. \param k  entries of a row, for messages; 0: there are no rows
void convert_to_distances(const char* who, Metric metric, const float* values, std::int64_t count, std::int64_t k,
                          float* out, const Team& team);

/// Objects all of whose entries count, n - 1 where there are no more objects.
/// \param times  how often each object is to be counted; empty: once
std::int64_t count_full(const Edges& edges, const Team& team, std::span<const std::int64_t> times = {});

/// Turns the sizes in indptr[1] to indptr[n] into offsets. \return the last one
std::int64_t add_up(Array<std::int64_t>& indptr, const Team& team);

}  // namespace gnnd::cpu
