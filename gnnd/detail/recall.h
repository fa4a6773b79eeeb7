// SPDX-License-Identifier: MIT
#pragma once
/// \file recall.h
/// A graph's recall from a sample of its objects, whose true neighbours are found by comparing them with all vectors.

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "gnnd/detail/input.h"
#include "gnnd/graph.h"
#include "gnnd/metric.h"
#include "gnnd/params.h"
#include "gnnd/stats.h"

namespace gnnd::detail {

/// The most objects that are measured, where no high recall asks for more.
inline constexpr std::int64_t kRecallObjects = 4096;

/// Objects that a CPU measures at most: as many, or those that a graph without a mistake needs to show a higher recall.
std::int64_t objects_that_show(double recall);
/// Objects that a GPU measures of n: the more the higher the recall that is asked for, whose interval must be small
/// beside what may be missing; more than kRecallObjects only of sets large enough that comparing all takes far longer.
std::int64_t objects_to_measure(std::int64_t n, double recall);

/// The neighbours of an object that count.
int recall_at_of(const BuildParams& params);

/// Columns behind those that count must have this share of the recall that is asked for before it ends iterations;
/// lists that have settled are good as they are. Without it low-dimensional sets end after the trees: in the plane
/// Recall@10 is 0.99 where Recall@64 is 0.54 (benchs/RESULTS.md).
inline constexpr double kOfAllColumns = 0.9;
/// All columns are measured on so many objects, each of which tells of k entries.
inline constexpr std::int64_t kAllColumnsObjects = 128;
/// The same parameters with all columns counted; none where they are anyway.
std::optional<BuildParams> of_all_columns(const BuildParams& params);

/// Of random numbers, that a build's own samples are drawn from.
inline constexpr std::uint64_t kRecallStream = 0x5ec411;
/// That samples are drawn from on which a graph is evaluated: no build has seen to it that it is good on these.
inline constexpr std::uint64_t kEvalStream = 0;

/// Objects of [0, n), `count` of them or all if there are fewer: ascending, each at most once, every set of them as
/// likely as any other.
/// \param stream  samples of the same seed and different streams are independent
/// \tparam Id     std::int32_t, or std::int64_t, which gives the same of as many and can count further
template <class Id = std::int32_t>
std::vector<Id> sample_objects(std::int64_t n, std::int64_t count, std::uint64_t seed,
                               std::uint64_t stream = kRecallStream);

/// The most samples of growing size for one estimate.
inline constexpr int kMostLooks = 6;
/// Standard errors to each side of an interval that holds the truth in 95% of samples that are looked at so often.
inline constexpr double kWidestBound = 2.453;

/// The estimate from what was found of the sampled objects. found_i is how many of the first `at` entries of object i
/// are true ones: not farther than its at-th nearest other object, so that ties count whichever of them was taken.
///
/// The interval is Wilson's (1927) for p of N trials. Entries of one object are found or missed together, so that N is
/// not objects * at but what gives the variance that was seen between objects, s^2: N = p (1 - p) objects / s^2 (the
/// design effect of cluster sampling, Kish 1965), at least `objects`, which is also taken where no variance was seen.
/// A sample of a large part of the set varies less, by (n - objects) / (n - 1), and one of all of it not at all.
///
/// A sample that grows until its interval decides stops where chance is large: of five intervals of 95% the last
/// misses 15% where the recall is what was asked for (tests/recall_estimate_test.cpp). With Pocock's (1977) bounds all
/// of the looks together miss 5%.
/// \param n               objects of the graph
/// \param objects         sampled, 1 to n
/// \param sum             of found_i
/// \param sum_of_squares  of found_i^2
/// \param looks           samples of growing size that may be looked at until one decides, 1 to kMostLooks
GNND_HOST_DEVICE inline RecallEstimate estimate_recall(std::int64_t n, std::int64_t objects, int at, double sum,
                                                       double sum_of_squares, int looks = 1) {
    constexpr double kBounds[kMostLooks] = {1.959963984540054, 2.178, 2.289, 2.361, 2.413, kWidestBound};
    const double z2 = kBounds[looks - 1] * kBounds[looks - 1];
    const double m = double(objects), p = sum / (m * at);
    RecallEstimate estimate;
    estimate.value = estimate.low = estimate.high = p;
    estimate.at = at;
    estimate.objects = objects;
    if (objects >= n) return estimate;
    const double variance =
        objects < 2 ? 0 : (sum_of_squares / (double(at) * at) - m * p * p) / (m - 1);  // of found_i / at
    double trials = m;
    if (variance > 0) trials = std::fmin(std::fmax(p * (1 - p) * m / variance, m), m * at);
    trials *= double(n - 1) / double(n - objects);
    const double centre = (p + z2 / (2 * trials)) / (1 + z2 / trials);
    const double half = std::sqrt(z2 * (p * (1 - p) / trials + z2 / (4 * trials * trials))) / (1 + z2 / trials);
    estimate.low = std::fmax(0.0, std::fmin(p, centre - half));
    estimate.high = std::fmin(1.0, std::fmax(p, centre + half));
    return estimate;
}

/// The same from the sampled objects' rows. An entry counts if it is one of the true ones, or as near as the last of
/// them: a true one counts whatever distance it has, for sums round otherwise on another device.
/// \param n      objects of the graph
/// \param lists  a row for each sampled object, of truth.k columns or more
/// \param truth  the same objects' nearest, exact; as many columns as count
RecallEstimate estimate_recall(std::int64_t n, const KnnGraphView& lists, const KnnGraphView& truth);
RecallEstimate estimate_recall(std::int64_t n, const WideGraphView& lists, const WideGraphView& truth);

/// Of two parts of a graph, n1 and n2 objects that were sampled apart, the recall of both together.
RecallEstimate join_recalls(const RecallEstimate& a, std::int64_t n1, const RecallEstimate& b, std::int64_t n2);

/// Objects whose mean says something, whatever the interval.
inline constexpr std::int64_t kEnoughMeasured = 256;

/// True where the interval lies on one side of what was asked for, so that more objects would hardly say otherwise.
inline bool is_decided(const RecallEstimate& recall, double wanted) {
    return recall.low >= wanted || recall.high < wanted;
}

/// True where a graph, or a part of one, has the recall that was asked for, by the mean of a sample that either decides
/// or does not get larger. What the interval of too few objects leaves open is not held against it.
inline bool is_reached(const RecallEstimate& recall, double wanted) {
    return recall.value >= wanted || (recall.objects < kEnoughMeasured && !is_decided(recall, wanted));
}

/// The part of a graph that was appended to, the old objects or the ones that were added, that has less recall than was
/// asked for; where both have, the one that has least; no objects where none has.
ObjectRange part_below(const RecallEstimate& of_old, std::int64_t old, const RecallEstimate& of_added,
                       std::int64_t added, double wanted);

}  // namespace gnnd::detail
