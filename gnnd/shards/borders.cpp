// SPDX-License-Identifier: MIT
#include "gnnd/shards/borders.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/recall.h"
#include "gnnd/error.h"

namespace gnnd::shards {
namespace {

constexpr std::uint64_t kBordersStream = 0xb04de45;
/// Neighbours of an object of the sample that count.
constexpr int kNeighbors = 10;
/// Objects for each shard, of a few shards and of small ones: fewer tell too little of who is near whom.
constexpr std::int64_t kPerShard = 256, kFewShards = 1 << 16, kSmallShards = 1 << 14;

}  // namespace

PairCounts::PairCounts(int shards, std::vector<std::int64_t> counts) : shards_(shards), counts_(std::move(counts)) {
    if (counts_.size() != std::size_t(shards) * std::size_t(shards))
        throw InvalidArgument(std::to_string(counts_.size()) + " counts for the pairs of " + std::to_string(shards) +
                              " shards");
}

std::int64_t PairCounts::inside() const {
    std::int64_t sum = 0;
    for (int shard = 0; shard < shards_; ++shard) sum += of(shard, shard);
    return sum;
}

std::int64_t PairCounts::sum() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::int64_t(0));
}

std::vector<Task> PairCounts::ranked() const {
    std::vector<Task> merges;
    for (int a = 0; a < shards_; ++a)
        for (int b = a + 1; b < shards_; ++b) merges.push_back({Task::Kind::merge, a, b});
    std::stable_sort(merges.begin(), merges.end(),
                     [&](const Task& a, const Task& b) { return of(a.first, a.second) > of(b.first, b.second); });
    return merges;
}

std::vector<std::int64_t> border_sample(const Manifest& manifest, const BuildParams& params) {
    return detail::sample_objects<std::int64_t>(manifest.base.n, border_objects(manifest), params.seed, kBordersStream);
}

std::int64_t border_objects(const Manifest& manifest) {
    return std::min({manifest.base.n, std::max(kSmallShards, 2 * manifest.most_rows()),
                     std::max(kFewShards, kPerShard * manifest.count())});
}

PairCounts find_borders(const io::VectorReader& vectors, const Manifest& manifest, const BuildParams& params,
                        const Callbacks& callbacks) {
    const std::vector<std::int64_t> objects = border_sample(manifest, params);
    const std::size_t row = std::size_t(vectors.d()) * size_of(vectors.dtype());
    std::vector<std::byte> rows(objects.size() * row);
    const cpu::Team team{cpu::Team::resolve(params.threads), &callbacks.interrupt};
    team.for_chunks(std::int64_t(objects.size()), 16, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            vectors.read(objects[std::size_t(i)], 1, rows.data() + std::size_t(i) * row);
    });
    std::vector<std::int32_t> shards;
    for (const std::int64_t object : objects) shards.push_back(manifest.shard_of(object));
    const VectorView sample{rows.data(), std::int64_t(objects.size()), vectors.d(), vectors.dtype(), 0};
    return count_borders(sample, shards, manifest.count(), params, callbacks);
}

PairCounts count_borders(const VectorView& sample, const std::vector<std::int32_t>& shards, int count,
                         const BuildParams& params, const Callbacks& callbacks) {
    PairCounts counts(count);
    if (sample.n < 2) return counts;
    BuildParams own = params;
    own.k = own.recall_at = std::min(kNeighbors, params.k);
    own.list_size = own.samples = 0;
    const KnnGraph graph = build(sample, own, callbacks).graph;
    for (std::int64_t i = 0; i < sample.n; ++i)
        for (int j = 0; j < own.k; ++j)
            if (const std::int32_t id = graph.ids_of(i)[j]; id >= 0)
                counts.add(shards[std::size_t(i)], shards[std::size_t(id)]);
    return counts;
}

}  // namespace gnnd::shards
