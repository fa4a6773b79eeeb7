// SPDX-License-Identifier: MIT
#include "gnnd/detail/recall.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gnnd/random.h"

namespace gnnd::detail {

std::int64_t objects_that_show(double recall, std::int64_t n) {
    constexpr std::int64_t kMost = 2 * kRecallObjects;
    const RecallCount whole{n > kMost ? n : kAnyNumber, kMost, 1};
    const double least = objects_to_rule_out(whole, recall, kLowFails / kSamplesOfGpu);
    return std::clamp(std::int64_t(std::min(least, double(kMost))) + 1, kRecallObjects, kMost);
}

std::int64_t objects_to_measure(std::int64_t n, double recall) {
    constexpr double kMissing = 0.004;  // up to so little may be missing, and fewer objects tell
    constexpr std::int64_t kMost = 4 * kRecallObjects, kShare = 64;
    const double wanted = double(kRecallObjects) * kMissing / std::max(1 - recall, 1e-9);
    const std::int64_t least = objects_that_show(recall, n);
    return std::clamp(std::int64_t(std::llround(std::min(wanted, double(kMost)))), least,
                      std::max(least, std::min(kMost, n / kShare)));
}

std::int64_t objects_at_first(std::int64_t objects, std::int64_t n, std::int64_t row_bytes, double recall) {
    // Chosen by measurement (benchs/NOTEBOOK.md). What a pair costs beside its bytes is as much as so many of them.
    constexpr double kBytesOfPair = 128, kWorthwhile = 3e11;
    constexpr double kMistakes = 2;  // so many times the objects that a graph without a mistake needs
    constexpr std::int64_t kParts = 4;
    const RecallCount whole{std::max(n, objects + 1), objects, 1};
    const double least = kMistakes * objects_to_rule_out(whole, recall, kLowFails / kSamplesOfGpu);
    if (!(least <= double(objects) / 2)) return objects;
    const std::int64_t first = std::max(objects / kParts, std::int64_t(least) + 1);
    const double saved = double(objects - first) * double(n) * (double(row_bytes) + kBytesOfPair);
    return saved >= kWorthwhile ? first : objects;
}

double missing_that_shows(double recall, std::int64_t objects, std::int64_t n) {
    constexpr double kDeviations = 1.4;  // computed of 1 to 3 entries of 10 that are missing together, within a quarter
    const double allowed = 1 - recall;
    return objects >= n ? allowed : std::max(allowed / 2, allowed - kDeviations * std::sqrt(allowed / double(objects)));
}

int recall_at_of(const BuildParams& params) {
    return params.recall_at != 0 ? params.recall_at : std::min(params.k, 10);
}

std::optional<BuildParams> of_all_columns(const BuildParams& params) {
    if (recall_at_of(params) == params.k) return std::nullopt;
    BuildParams all = params;
    all.recall_at = params.k;
    all.recall = float(kOfAllColumns * double(params.recall));
    return all;
}

template <class Id>
std::vector<Id> sample_objects(std::int64_t n, std::int64_t count, std::uint64_t seed, std::uint64_t stream) {
    if (count >= n) {
        std::vector<Id> all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), Id(0));
        return all;
    }
    // Floyd's algorithm (Bentley, Floyd 1987): as many steps as objects that are wanted. They are hashed by their
    // order, so that a table of twice as many places holds them nearly sorted; behind its end is room for the last
    // ones.
    constexpr Id kNone = -1;
    const double places_each = 2 * double(count) / double(n);
    std::vector<Id> places(std::size_t(3 * count), kNone);
    const auto take = [&](Id object) {
        auto place = places.begin() + std::ptrdiff_t(double(object) * places_each);
        while (*place != kNone && *place != object) ++place;
        return std::exchange(*place, object) == kNone;
    };
    Random random(seed, stream);
    for (std::int64_t last = n - count; last < n; ++last)
        if (!take(Id(random.below_any(std::uint64_t(last + 1))))) take(Id(last));
    std::vector<Id> objects;
    objects.reserve(std::size_t(count));
    for (const Id object : places) {
        if (object == kNone) continue;
        auto at = objects.insert(objects.end(), object);
        for (; at != objects.begin() && at[-1] > object; --at) std::iter_swap(at - 1, at);
    }
    return objects;
}

template std::vector<std::int32_t> sample_objects(std::int64_t, std::int64_t, std::uint64_t, std::uint64_t);
template std::vector<std::int64_t> sample_objects(std::int64_t, std::int64_t, std::uint64_t, std::uint64_t);

std::vector<std::int32_t> sample_in_any_order(std::int64_t n, std::int64_t count, std::uint64_t seed) {
    std::vector<std::int32_t> objects = sample_objects(n, count, seed);
    Random random(seed, 0x0bde7);
    for (std::size_t i = objects.size(); i > 1; --i) std::swap(objects[i - 1], objects[random.below(std::uint32_t(i))]);
    return objects;
}

void RecallCount::add(int found) {
    double power = 1;
    for (double& sum : missed) sum += power *= at - found;
}

RecallEstimate estimate_recall(const RecallCount& count, int samples) {
    const double p = count.mean();
    RecallEstimate estimate{p, p, p, count.at, count.objects};
    if (count.objects >= count.n) return estimate;
    /// The farthest from `wrong` that is ruled out, as `wrong` is taken to be.
    const auto end = [&](double wrong, double alpha) {
        double possible = p;
        for (int step = 0; step < 50; ++step) {
            const double between = (wrong + possible) / 2;
            const bool ruled_out = objects_to_rule_out(count, between, alpha / samples) <= double(count.objects);
            (ruled_out ? wrong : possible) = between;
        }
        return wrong;
    };
    estimate.low = end(0, kLowFails);
    estimate.high = end(1, kHighFails);
    return estimate;
}

namespace {

template <class Id>
RecallEstimate estimate(std::int64_t n, std::int64_t d, const GraphView<Id>& lists, const GraphView<Id>& truth) {
    const bool similarity = is_similarity(truth.metric);
    const std::int64_t at = truth.k;
    const double equal = rounding_factor(truth.metric, d);
    RecallCount count{n, truth.n, int(at)};
    for (std::int64_t i = 0; i < truth.n; ++i) {
        const Id *ids = lists.ids_of(i), *true_ids = truth.ids_of(i);
        const float* distances = lists.distances_of(i);
        const double last = equal * double(truth.distances_of(i)[at - 1]);
        int found = 0;
        for (std::int64_t j = 0; j < at; ++j) {
            const bool near = similarity ? distances[j] >= last : distances[j] <= last;
            found += ids[j] >= 0 && (near || std::find(true_ids, true_ids + at, ids[j]) != true_ids + at);
        }
        count.add(found);
    }
    return estimate_recall(count);
}

}  // namespace

RecallEstimate estimate_recall(std::int64_t n, std::int64_t d, const KnnGraphView& lists, const KnnGraphView& truth) {
    return estimate(n, d, lists, truth);
}
RecallEstimate estimate_recall(std::int64_t n, std::int64_t d, const WideGraphView& lists, const WideGraphView& truth) {
    return estimate(n, d, lists, truth);
}

RecallEstimate join_recalls(const RecallEstimate& a, std::int64_t n1, const RecallEstimate& b, std::int64_t n2) {
    const double share1 = double(n1) / double(n1 + n2), share2 = 1 - share1;
    RecallEstimate both;
    both.value = share1 * a.value + share2 * b.value;
    // The errors of both are independent, and add up as their squares do.
    both.low = both.value - std::hypot(share1 * (a.value - a.low), share2 * (b.value - b.low));
    both.high = std::min(1.0, both.value + std::hypot(share1 * (a.high - a.value), share2 * (b.high - b.value)));
    both.at = a.at;
    both.objects = a.objects + b.objects;
    return both;
}

ObjectRange part_below(const RecallEstimate& of_old, std::int64_t old, const RecallEstimate& of_added,
                       std::int64_t added, double wanted) {
    const bool old_lack = !is_reached(of_old, wanted), added_lack = !is_reached(of_added, wanted);
    if (added_lack && (!old_lack || of_added.value < of_old.value)) return {old, added};
    return {0, old_lack ? old : 0};
}

}  // namespace gnnd::detail
