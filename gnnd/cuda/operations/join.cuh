// SPDX-License-Identifier: MIT
#pragma once
/// \file join.cuh
/// Both directions of a graph's entries in one symmetric matrix.
///
/// Each row is sorted by id. A stable sort of all entries by the row that they name makes of them the rows of the other
/// direction, whose columns ascend by themselves. A warp joins both rows of an object: an entry's place is its own
/// place in its row and the number of smaller ones in the other, so that each is found by itself. Nothing depends on
/// the order in which threads run.

#include "gnnd/cuda/operations/edges.cuh"
#include "gnnd/detail/join_rules.h"
#include "gnnd/operations.h"

namespace gnnd::cuda {

/// An entry: the id in the upper half and the value's bits in the lower one.
using EdgeKey = u64;

__device__ inline EdgeKey make_key(std::int32_t id, float value) {
    return u64(u32(id)) << 32 | __float_as_uint(value);
}
__device__ inline std::int32_t key_id(EdgeKey key) {
    return std::int32_t(key >> 32);
}
__device__ inline float key_value(EdgeKey key) {
    return __uint_as_float(u32(key));
}
/// No entry.
inline constexpr EdgeKey kNoKey = ~EdgeKey(0);

/// The number of ascending entries whose ids are smaller.
__device__ inline std::int64_t smaller_ones(const EdgeKey* keys, std::int64_t count, std::int32_t id) {
    std::int64_t begin = 0;
    while (count > 0) {
        const std::int64_t half = count / 2;
        const bool smaller = key_id(keys[begin + half]) < id;
        begin += smaller ? half + 1 : 0;
        count = smaller ? count - half - 1 : half;
    }
    return begin;
}

/// Entries of rows one after the other, and where in `keys` a row's lie: from i * columns on, and after these from
/// begins[i] of the other direction's, if there are some.
struct EdgeRows {
    std::int64_t n, columns;
    const std::int64_t* lengths;  ///< n
    const std::int64_t* begins;   ///< n + 1, or null

    __device__ std::int64_t begin(std::int64_t i) const { return i * columns + (begins == nullptr ? 0 : begins[i]); }
    __device__ std::int64_t count(std::int64_t i) const {
        return lengths[i] + (begins == nullptr ? 0 : begins[i + 1] - begins[i]);
    }
};

/// The entries that count, by ascending ids: row i has the first lengths[i] of `columns` keys.
struct SortedRows {
    DeviceArray<EdgeKey> keys;
    DeviceArray<std::int64_t> lengths;  ///< n, and a place more

    /// \param refuse_doubles  whether a row that holds an id twice is an error. \throws InvalidArgument
    SortedRows(const Edges& edges, bool refuse_doubles, Work& work);
};

/// The rows as a matrix, in the room or, without, in host memory. \param keys  kNoKey: none
/// \param counts  of each row the others, n and a place more for their sum; is overwritten
/// \return complete; with `n` alone where there is room
CsrGraph to_matrix(const EdgeRows& rows, const EdgeKey* keys, std::int64_t* counts, const CsrRoom& room, Work& work);

/// The matrix of both directions by the rule, one of join_rules.h.
template <class Rule>
CsrGraph join_directions(const Edges& edges, const Rule& rule, const CsrRoom& room, Work& work);

extern template CsrGraph join_directions(const Edges&, const detail::Nearer<false, false>&, const CsrRoom&, Work&);
extern template CsrGraph join_directions(const Edges&, const detail::Nearer<false, true>&, const CsrRoom&, Work&);
extern template CsrGraph join_directions(const Edges&, const detail::Nearer<true, false>&, const CsrRoom&, Work&);
extern template CsrGraph join_directions(const Edges&, const detail::Nearer<true, true>&, const CsrRoom&, Work&);
extern template CsrGraph join_directions(const Edges&, const detail::FuzzyRule&, const CsrRoom&, Work&);

}  // namespace gnnd::cuda
