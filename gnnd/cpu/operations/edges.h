// SPDX-License-Identifier: MIT
#pragma once
/// \file edges.h
/// The entries of a k-NN graph that an operation counts.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "gnnd/cpu/parallel.h"
#include "gnnd/graph.h"
#include "gnnd/operations.h"

namespace gnnd::cpu {

/// Rows that a thread takes at a time.
inline constexpr std::int64_t kRowsAtOnce = 2048;

/// \param threads  0: all. \throws InvalidArgument
Team team_of(int threads, const std::function<bool()>* interrupt);

/// The first columns of a graph with a value for each entry. Those outside of [low, high] do not count.
struct Edges {
    std::int64_t n = 0, k = 0;  ///< k: from a row to the next one
    std::int64_t columns = 0;   ///< that are looked at, up to k
    const std::int32_t* ids = nullptr;
    const float* values = nullptr;
    float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
    bool larger_is_nearer = false;

    const std::int32_t* ids_of(std::int64_t i) const { return ids + i * k; }
    const float* values_of(std::int64_t i) const { return values + i * k; }
    bool counts(std::int32_t id, float value) const { return id >= 0 && value >= low && value <= high; }
    /// Entries of the row before the padding.
    int length_of(std::int64_t i) const {
        std::int64_t length = columns;
        while (length > 0 && ids_of(i)[length - 1] < 0) --length;
        return int(length);
    }
};

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
