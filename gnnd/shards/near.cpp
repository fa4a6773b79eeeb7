// SPDX-License-Identifier: MIT
#include "gnnd/shards/near.h"

#include <algorithm>

namespace gnnd::shards {
namespace {

/// Of the merges that are left one of so many, at least, is in a batch, so that there are few of these; but of many
/// shards, which have so many pairs that this alone would be too much, no more than half as many as there are shards,
/// or where that is more a part of those that were merged before. So what is merged beyond need is a part of what is
/// needed, however many pairs there are.
constexpr std::size_t kOf = 32, kOfMerged = 4;

std::size_t least_of_batch(std::size_t left, int shards) {
    const auto count = std::size_t(shards), merged = count * (count - 1) / 2 - left;
    return std::min((left + kOf - 1) / kOf, std::max(count / 2, merged / kOfMerged));
}

}  // namespace

/// The part of the true neighbours within reach that was found so far is taken for that of the end.
std::vector<Task> choose_merges(std::vector<Task>& left, const PairCounts& truth, std::int64_t& within, double recall,
                                double target) {
    const double found = recall * double(truth.sum());
    const double needed = found > 0 ? target * double(within) / found * double(truth.sum()) : double(truth.sum());
    const std::size_t least = std::max<std::size_t>(1, least_of_batch(left.size(), truth.shards()));
    std::size_t count = 0;
    while (count < left.size() && (count < least || double(within) < needed)) {
        within += truth.of(left[count].first, left[count].second);
        ++count;
    }
    const auto end = left.begin() + std::ptrdiff_t(count);
    std::vector<Task> chosen(left.begin(), end);
    left.erase(left.begin(), end);
    return chosen;
}

float recall_of_builds(float target) {
    return 1 - (1 - target) / 4;
}

float recall_of_merges(float target, std::size_t merges, int shards) {
    const float each = 2 * float(merges) / float(shards);
    return 1 - (1 - target) / (4 * std::max(1.f, each));
}

double recall_to_end_at(const RecallEstimate& recall, double target) {
    const double deviation = (recall.value - recall.low) / 2;  // as the interval is 1.96 of them to either side
    return target + std::min(deviation, (1 - target) / 4);
}

RecallEstimate merge_near(Runner& runner, Store& store, const PairCounts& borders, int workers,
                          const std::function<RecallEstimate()>& measure) {
    const int shards = store.manifest().count();
    runner.run(make_builds(shards, workers), false);
    runner.measure_rest();
    const PairCounts truth = store.recall()->borders();
    std::int64_t within = truth.inside();
    std::vector<Task> left = borders.ranked();
    std::erase_if(left, [&](const Task& merge) {
        if (!store.merged(merge)) return false;
        within += truth.of(merge.first, merge.second);
        return true;
    });
    for (;;) {
        runner.deliver();
        store.flush_lists();
        const RecallEstimate recall = measure();
        const float asked = store.manifest().params.recall;
        const double target = recall_to_end_at(recall, asked);
        if (left.empty() || recall.value >= target) return recall;
        const std::vector<Task> chosen = choose_merges(left, truth, within, recall.value, target);
        runner.hold_merges_to(recall_of_merges(asked, chosen.size(), shards));
        runner.run(make_merges(shards, workers, chosen), false);
    }
}

}  // namespace gnnd::shards
