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

inline constexpr std::int64_t kAnyNumber = std::int64_t(1) << 40;
/// Objects that a CPU measures at most of n: as many, or those that a graph without a mistake needs to show a higher
/// recall.
std::int64_t objects_that_show(double recall, std::int64_t n = kAnyNumber);
/// Objects that a GPU measures of n: the more the higher the recall that is asked for, whose interval must be small
/// beside what may be missing; more than kRecallObjects only of sets large enough that comparing all takes far longer.
std::int64_t objects_to_measure(std::int64_t n, double recall);
/// So many of them are compared with all vectors at first, and others where these do not tell (see
/// objects_to_go_on_with()): a part where comparing takes long, and where a graph with few mistakes shows the recall on
/// it. All where comparing the others apart would cost about what it may save.
/// \param objects    of a sample
/// \param n          vectors that they are compared with
/// \param row_bytes  of each, as it is compared
std::int64_t objects_at_first(std::int64_t objects, std::int64_t n, std::int64_t row_bytes, double recall);

/// No more than this share may be missing for a recall to show on so many of n objects, about: intervals of samples
/// whose objects lack entries now and then end so far below their means.
double missing_that_shows(double recall, std::int64_t objects, std::int64_t n);

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

/// The same objects in an order of chance: the first ones of any number are a sample, too.
std::vector<std::int32_t> sample_in_any_order(std::int64_t n, std::int64_t count, std::uint64_t seed);

/// What was found of the sampled objects: how many of the first `at` entries of each are not true ones, so that ties
/// with the at-th nearest other object count whichever of them was taken.
struct RecallCount {
    static constexpr int kPowers = 4;
    std::int64_t n;               ///< objects of the graph
    std::int64_t objects;         ///< sampled, 1 to n
    int at;                       ///< entries of each
    double missed[kPowers] = {};  ///< sums over the objects of what each lacks, of its square, its cube, ...

    /// An object, one of `objects`, of which so many entries are true ones.
    void add(int found);
    GNND_HOST_DEVICE double mean() const { return 1 - missed[0] / (double(objects) * at); }
};

/// Samples of growing size that a GPU may draw, of which the one that decides is taken. A CPU adds to one, as a GPU
/// does to the first.
inline constexpr int kSamplesOfGpu = 2;
/// An interval's ends fail so often, together in 5% of the cases. That the recall is not there after all matters more.
inline constexpr double kLowFails = 0.04, kHighFails = 0.01;

/// So many objects, if all are like those that were counted, rule out a recall by betting (Waudby-Smith, Ramdas 2024);
/// infinitely many where none do. It is ruled out where there are no fewer.
///
/// Were the recall m, a player who stakes the share lambda of what he owns on each object x of [0, 1] would in the end
/// own the product of all 1 + lambda (x - m), which is 1 on average at any time. So it ever reaches 1 / alpha with a
/// chance of alpha at most (Ville 1939), and an m at which it has is ruled out, with all below; m - x does it for those
/// above. This holds for all that a sample grows to, whichever is the last, and however few objects lack entries; the
/// variance of a few objects, on which Wilson's and normal intervals rest, says nothing of rare ones that are not among
/// them. Four players, who have a share of the 1 each, cover few objects and many.
///
/// The logarithm of 1 + w, w >= -b, is at least its series up to w^3 less kappa w^4, where kappa makes both equal at -b
/// (as Fan, Grama, Liu 2015 have it up to w^2), so that sums of powers suffice. Objects are drawn without replacement:
/// after i of them, whose 1 + lambda (x - m) have the sum A, a product of at most (A / i)^i grows by (i - A) / (n - i)
/// of itself on average, that is by 1 / (e (n - i)) at most. At any time of `objects` draws it is at most
/// 1 + ln(n / (n - objects)) / e on average. Of a sample that grows that holds with the most objects there may be, not
/// with those at which it ends: where these are 4,096 of 5,000 what is proven of the 4% is 6.4%, and simulated 2.3%.
/// \param recall  below the mean for a lower bound, above it for an upper one
/// \param alpha   how often that may be wrong
GNND_HOST_DEVICE inline double objects_to_rule_out(const RecallCount& count, double recall, double alpha) {
    constexpr int kPlayers = 4;
    constexpr double kMostLost = 0.91;  // of what a player owns, at once
    constexpr double kShare[kPlayers] = {0.55, 0.2, 0.15, 0.1};
    constexpr double kOfLow[kPlayers] = {0.9, 0.5, 0.15, 0.04}, kOfHigh[kPlayers] = {8, 2.5, 0.7, 0.1};
    const bool low = recall < count.mean();
    const double e = 1 - recall, sign = low ? 1 : -1;
    double z[RecallCount::kPowers], scale = double(count.objects);
    for (int i = 0; i < RecallCount::kPowers; ++i) z[i] = count.missed[i] / (scale *= count.at);
    // Means of x - m, or of m - x where the bets are on less, and of its powers; x is 1 less what is missed.
    const double y1 = sign * (e - z[0]), y2 = e * (e - 2 * z[0]) + z[1],
                 y3 = sign * (e * (e * (e - 3 * z[0]) + 3 * z[1]) - z[2]),
                 y4 = e * (e * (e * (e - 4 * z[0]) + 6 * z[1]) - 4 * z[2]) + z[3];
    const double left = double(count.n - count.objects),
                 reach = std::log((1 + std::log(double(count.n) / left) / std::exp(1.0)) / alpha);
    double least = INFINITY;
    for (int i = 0; i < kPlayers; ++i) {
        const double lambda = low ? kOfLow[i] : kOfHigh[i], b = lambda * (low ? recall : e);
        // Its series is 1/4 + b/5 + b^2/6 + ..., which the logarithm of 1 - b, 1e-16 off, tells where b is not small.
        const double kappa =
            b < 0.1 ? 0.25 + b / (5 * (1 - b)) : (-std::log1p(-b) - b * (1 + b * (1.0 / 2 + b / 3))) / (b * b * b * b);
        const double of_one = lambda * (y1 - lambda * (y2 / 2 - lambda * (y3 / 3 - lambda * kappa * y4)));
        if (b < kMostLost && of_one > 0) least = std::fmin(least, (reach - std::log(kShare[i])) / of_one);
    }
    return least;
}

/// True where so many objects show that a graph has the recall. A build measures after each iteration, on the same
/// objects, and ends where they do. It may do so any number of times, since lists get better, and so do products: were
/// the recall not there at that time, the last graph without it would have passed, too, and that is one graph, which
/// the sample does not depend on. That is nearly so where lists are ordered by codes or projections, which may lose a
/// true neighbour, and where what was measured chose the iterations; of intervals whose truth is above the recall that
/// was asked for it is not proven. Simulated, at most 0.8% of those failed.
/// \param samples  that were drawn, each apart, until one decides
GNND_HOST_DEVICE inline bool shows(const RecallCount& count, double recall, int samples = 1) {
    if (count.objects >= count.n || count.mean() <= recall) return count.objects >= count.n && count.mean() >= recall;
    return objects_to_rule_out(count, recall, kLowFails / samples) <= double(count.objects);
}

/// Of a sample that does not show a recall: with how many objects to go on. As many as promise to show it, if all are
/// like those that were counted, and some more; of `all` that there may be in the end all, where that would be most of
/// them, or fewer entries were found than were asked for; as many as there are where that rules out that all show it.
/// This may be wrong in one of five cases, for it costs time only. Whatever the number, the interval holds, as
/// objects_to_rule_out() says. Twice as many at least, for each time takes as long as comparing some hundreds.
/// \param counted  the first objects of those in an order of chance
GNND_HOST_DEVICE inline std::int64_t objects_to_go_on_with(const RecallCount& counted, double recall,
                                                           std::int64_t all) {
    constexpr double kRulesOut = 0.2, kMore = 1.2, kTimes = 2, kMost = 0.75;
    const bool above = counted.mean() >= recall;
    const double needed = objects_to_rule_out(counted, recall, above ? kLowFails / kSamplesOfGpu : kRulesOut);
    if (!above) return needed > double(counted.objects) ? all : counted.objects;
    const double next = std::fmax(kMore * needed, kTimes * double(counted.objects));
    return next < kMost * double(all) ? std::int64_t(next) : all;
}

/// The estimate, with an interval that holds the truth in 95% of the cases.
/// \param samples  as above
RecallEstimate estimate_recall(const RecallCount& count, int samples = 1);

/// Distances up to so many times another one may be equal to it. Quotients, as chi2's, and sums of them round: equal
/// sums of small whole numbers come out unequal, and would count as missed. Other metrics' sums of such are exact.
/// The errors of d + 4 roundings, each of half an ulp at most, go either way, so that each of both sums is off by no
/// more than four times their root, but once in some thousands of cases (Higham, Mary 2019).
inline double rounding_factor(Metric metric, std::int64_t d) {
    constexpr double kHalfUlp = 1.0 / (1 << 24);
    const bool divides = visit(metric, [](auto m) { return decltype(m)::divides; });
    return divides ? 1 + 2 * 4 * std::sqrt(double(d + 4)) * kHalfUlp : 1;
}

/// The same from the sampled objects' rows. An entry counts if it is one of the true ones, or as near as the last of
/// them: a true one counts whatever distance it has, for sums round otherwise on another device.
/// \param n      objects of the graph
/// \param d      components of each
/// \param lists  a row for each sampled object, of truth.k columns or more
/// \param truth  the same objects' nearest, exact; as many columns as count
RecallEstimate estimate_recall(std::int64_t n, std::int64_t d, const KnnGraphView& lists, const KnnGraphView& truth);
RecallEstimate estimate_recall(std::int64_t n, std::int64_t d, const WideGraphView& lists, const WideGraphView& truth);

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
