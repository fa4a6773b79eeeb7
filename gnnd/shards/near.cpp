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

/// Of the merges that are left those without which a shard and all that it was merged with hold less than k others:
/// its rows would have empty places, whatever the recall.
std::vector<Task> merges_that_fill(const Manifest& manifest, const std::vector<Task>& merged,
                                   const std::vector<Task>& left) {
    const std::int64_t wanted = std::min<std::int64_t>(manifest.params.k, manifest.base.n - 1);
    std::vector<std::int64_t> others;
    for (int shard = 0; shard < manifest.count(); ++shard) others.push_back(manifest.rows(shard) - 1);
    const auto of = [&](int shard) -> std::int64_t& { return others[std::size_t(shard)]; };
    const auto merge = [&](const Task& task) {
        of(task.first) += manifest.rows(task.second);
        of(task.second) += manifest.rows(task.first);
    };
    for (const Task& task : merged) merge(task);
    std::vector<Task> chosen;
    for (const Task& task : left) {
        if (std::min(of(task.first), of(task.second)) >= wanted) continue;
        merge(task);
        chosen.push_back(task);
    }
    return chosen;
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

std::vector<Task> next_merges(const Manifest& manifest, const PairCounts& borders, const PairCounts& truth,
                              const std::vector<Task>& merged, const RecallEstimate& recall) {
    const double target = recall_to_end_at(recall, manifest.params.recall);
    const auto number = [&](const Task& merge) {
        return std::size_t(merge.first) * std::size_t(truth.shards()) + std::size_t(merge.second);
    };
    std::vector<char> is_merged(truth.counts().size());
    std::int64_t within = truth.inside();
    for (const Task& merge : merged) {
        is_merged[number(merge)] = 1;
        within += truth.of(merge.first, merge.second);
    }
    std::vector<Task> left = borders.ranked();
    std::erase_if(left, [&](const Task& merge) { return is_merged[number(merge)] != 0; });
    if (left.empty()) return {};
    if (recall.value >= target) return merges_that_fill(manifest, merged, left);
    return choose_merges(left, truth, within, recall.value, target);
}

RecallEstimate merge_near(Runner& runner, Store& store, const PairCounts& borders, int workers,
                          const std::function<RecallEstimate()>& measure) {
    const int shards = store.manifest().count();
    runner.run(make_builds(shards, workers), false);
    runner.measure_rest();
    const PairCounts truth = store.recall()->borders();
    std::vector<Task> merged = borders.ranked();
    std::erase_if(merged, [&](const Task& merge) { return !store.merged(merge); });
    for (;;) {
        runner.deliver();
        store.flush_lists();
        const RecallEstimate recall = measure();
        const std::vector<Task> chosen = next_merges(store.manifest(), borders, truth, merged, recall);
        if (chosen.empty()) return recall;
        runner.hold_merges_to(recall_of_merges(store.manifest().params.recall, chosen.size(), shards));
        runner.run(make_merges(shards, workers, chosen), false);
        merged.insert(merged.end(), chosen.begin(), chosen.end());
    }
}

}  // namespace gnnd::shards
