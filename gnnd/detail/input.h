// SPDX-License-Identifier: MIT
#pragma once
/// \file input.h
/// The input of a run of GNND, and the rule of which pairs of objects it compares.

#include <algorithm>
#include <cstdint>

#include "gnnd/graph.h"
#include "gnnd/params.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

/// The rule of which pairs count. GGM runs on two sets at once, and inside of each everything is known already.
struct Pairs {
    std::uint32_t border = 0;  ///< first object of the second set; 0: there is one set, every pair counts

    GNND_HOST_DEVICE bool all() const { return border == 0; }
    GNND_HOST_DEVICE bool count(std::uint32_t a, std::uint32_t b) const {
        return all() || (a < border) != (b < border);
    }
    /// The objects [first, first + size) that those of the object's set are compared with, out of n.
    GNND_HOST_DEVICE std::uint32_t first_partner(std::uint32_t object) const { return object < border ? border : 0; }
    GNND_HOST_DEVICE std::uint32_t partners(std::uint32_t object, std::uint32_t n) const {
        return object < border ? n - border : all() ? n : border;
    }
};

/// The objects [first, first + count).
struct ObjectRange {
    std::int64_t first = 0, count = 0;
};

/// A set of vectors, alone (build) or with a graph to improve (refine); or two sets with a graph each (merge), or with
/// one of the first only (append), the objects of the second one numbered after those of the first.
struct Input {
    VectorView vectors[2];
    KnnGraphView graphs[2];
    bool exact = false;  ///< all pairs are compared, whatever graphs there are
    /// Only neighbours of the other set are wanted: where all pairs are compared, those inside of each need not be.
    bool across = false;
    bool inserts = false;  ///< the second set has no graph: its objects are inserted into the first one's (insert.h)
    std::int64_t unmeasured = 0;  ///< so many of the first set's last objects are measured as if they were inserted
    std::int64_t first = 0;       ///< the number by which errors call the first object: that of a part in the whole
    ObjectRange held{};           ///< these are to have the recall that is asked for; none: all

    std::int64_t n() const { return vectors[0].n + vectors[1].n; }
    std::int64_t d() const { return vectors[0].d; }
    DType dtype() const { return vectors[0].dtype; }
    bool merges() const { return vectors[1].n != 0; }
    bool refines() const { return !merges() && graphs[0].ids != nullptr; }
    /// So many of the last objects are measured as the inserted ones.
    std::int64_t measured_as_inserted() const { return vectors[1].n + unmeasured; }
    ObjectRange measured() const { return held.count != 0 ? held : ObjectRange{0, n()}; }
    Pairs pairs() const { return {merges() ? std::uint32_t(vectors[0].n) : 0}; }
    /// The pairs that are compared where all pairs are.
    Pairs all_pairs() const { return across ? pairs() : Pairs{}; }
    /// The set that an object is in, and its number there.
    int set_of(std::int64_t object) const { return object >= vectors[0].n; }
    std::int64_t number_in(int set, std::int64_t object) const { return set == 0 ? object : object - vectors[0].n; }
    /// True where the vectors of both sets follow each other in memory, as those of one.
    bool adjoining() const {
        return !merges() || (vectors[0].row_bytes() == vectors[1].row_bytes() &&
                             vectors[0].row(vectors[0].n) == static_cast<const std::byte*>(vectors[1].data));
    }
};

/// Length of the lists while building.
inline int list_size_of(const BuildParams& params) {
    return params.list_size != 0 ? params.list_size : std::max({params.k, params.samples, 32});
}

/// With at most so many NEW entries after an iteration a recall that is reached ends a run. What a graph to refine
/// lacks in columns counts less in the recall than its first ones: there lists have to settle first (20,000 x 16 from
/// 10 exact columns to 40, on an H200: Recall@10 is 1 from the start, Recall@40 0.38 after the first iteration, 0.81
/// after the third, 0.98 in the end).
inline std::uint64_t most_changed(const Input& input, const BuildParams& params) {
    constexpr double kSettled = 0.02;  // of all entries
    const std::int64_t wanted = std::min<std::int64_t>(params.k, input.n() - 1);
    if (!input.refines() || input.graphs[0].k >= wanted) return UINT64_MAX;
    return std::uint64_t(kSettled * double(input.n()) * double(wanted));
}

/// Of a merge: how many columns of a graph stay in the lists. Neighbours of the other set that are not near yet need
/// room, half of a list, to find nearer ones from; those that trees find compete with all that is known, which is
/// faster and loses nothing (measured, NOTEBOOK.md). What does not stay is set aside and joined with what came in at
/// the end.
inline std::int64_t kept_columns(const KnnGraphView& graph, const BuildParams& params) {
    const int length = list_size_of(params);
    return std::min<std::int64_t>(graph.k, grows_trees(params.init) ? length : length - length / 2);
}

/// True where the lists of a merge are without some columns of its graphs until the end.
inline bool sets_aside(const Input& input, const BuildParams& params) {
    return input.merges() && (kept_columns(input.graphs[0], params) < input.graphs[0].k ||
                              kept_columns(input.graphs[1], params) < input.graphs[1].k);
}

/// With fewer NEW entries after an iteration a run has converged. For a merge they are a share of what there is to
/// find, the entries of the other set where both mix; with this share no recall was lost that counts (NOTEBOOK.md).
inline double convergence_threshold(const BuildParams& params, const Input& input) {
    constexpr double kOfMerge = 20;
    const double k = params.k, n = double(input.n());
    if (!input.merges()) return double(params.delta) * n * k;
    return kOfMerge * double(params.delta) * 2 * double(input.vectors[0].n) * double(input.vectors[1].n) * k / n;
}

}  // namespace gnnd::detail
