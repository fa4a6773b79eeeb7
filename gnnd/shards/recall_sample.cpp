// SPDX-License-Identifier: MIT
#include "gnnd/shards/recall_sample.h"

#include <algorithm>

#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/fold.h"
#include "gnnd/detail/recall.h"

namespace gnnd::shards {
namespace {

/// An object has no more neighbours than there are others.
int columns_of(const Manifest& manifest) {
    return int(std::clamp<std::int64_t>(detail::recall_at_of(manifest.params), 1,
                                        std::max<std::int64_t>(1, manifest.base.n - 1)));
}

}  // namespace

RecallSample::RecallSample(const io::VectorReader& base, const Manifest& manifest, std::int64_t objects, int threads)
    : manifest_(manifest),
      at_(columns_of(manifest)),
      threads_(threads),
      objects_(detail::sample_objects<std::int64_t>(base.n(), objects, manifest.params.seed)),
      compared_(manifest.shards.size()),
      listed_(manifest.shards.size()),
      lists_(no_rows()),
      truth_(no_rows()) {
    const std::size_t row = std::size_t(base.d()) * size_of(base.dtype());
    vectors_.resize(objects_.size() * row);
    cpu::Team{cpu::Team::resolve(threads), nullptr}.for_chunks(
        count(), 16, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                base.read(objects_[i], 1, vectors_.data() + std::size_t(i) * row);
        });
}

std::uint64_t RecallSample::bytes(const Manifest& manifest, std::int64_t objects) {
    const auto count = std::uint64_t(std::min(manifest.base.n, objects));
    const std::uint64_t row = std::uint64_t(manifest.base.d) * size_of(manifest.base.dtype);
    const std::uint64_t entries = 2 * (sizeof(std::int64_t) + sizeof(float)) + sizeof(std::int32_t) + sizeof(float);
    return count * (row + std::uint64_t(columns_of(manifest)) * entries + sizeof(std::int64_t) + sizeof(std::int32_t));
}

RecallSample::Rows RecallSample::no_rows() const {
    const auto entries = std::size_t(count() * at_);
    return {std::vector<std::int64_t>(entries, -1), std::vector<float>(entries, worst_value(manifest_.params.metric))};
}

WideGraphView RecallSample::view_of(const Rows& rows) const {
    return {count(), at_, manifest_.params.metric, rows.ids.data(), rows.distances.data()};
}

/// Calls take(place in the sample, number in the shard).
template <class Take>
void RecallSample::for_objects_of(int shard, const Take& take) const {
    const std::int64_t begin = manifest_.begin(shard), end = manifest_.begin(shard + 1);
    const auto first = std::lower_bound(objects_.begin(), objects_.end(), begin);
    for (auto object = first; object != objects_.end() && *object < end; ++object)
        take(object - objects_.begin(), *object - begin);
}

std::vector<std::int32_t> RecallSample::numbers_in(int shard) const {
    std::vector<std::int32_t> numbers(objects_.size(), -1);
    for_objects_of(
        shard, [&](std::int64_t place, std::int64_t number) { numbers[std::size_t(place)] = std::int32_t(number); });
    return numbers;
}

void RecallSample::take_nearest(int shard, const KnnGraphView& nearest, double seconds) {
    const detail::Partner all{0, std::int32_t(manifest_.rows(shard)), manifest_.begin(shard)};
    const std::lock_guard lock(mutex_);
    detail::fold(nearest, all, at_, truth_.ids.data(), truth_.distances.data(), threads_);
    seconds_ += seconds;
    compared_[std::size_t(shard)] = 1;
}

template <class Id>
void RecallSample::take_list(std::int64_t place, const Id* ids, const float* distances) {
    std::copy_n(ids, at_, lists_.ids.data() + place * at_);
    std::copy_n(distances, at_, lists_.distances.data() + place * at_);
}

template <class Id>
void RecallSample::take_lists(int shard, const GraphView<Id>& lists) {
    for_objects_of(shard, [&](std::int64_t place, std::int64_t number) {
        take_list(place, lists.ids_of(number), lists.distances_of(number));
    });
    listed_[std::size_t(shard)] = 1;
}
template void RecallSample::take_lists(int, const KnnGraphView&);
template void RecallSample::take_lists(int, const WideGraphView&);

void RecallSample::read_lists(int shard, const io::GraphFile& lists) {
    std::vector<std::int64_t> ids(std::size_t(lists.k()));
    std::vector<float> distances(ids.size());
    for_objects_of(shard, [&](std::int64_t place, std::int64_t number) {
        lists.read_into(number, 1, ids.data(), distances.data());
        take_list(place, ids.data(), distances.data());
    });
    listed_[std::size_t(shard)] = 1;
}

double RecallSample::seconds() const {
    const std::lock_guard lock(mutex_);
    return seconds_;
}

PairCounts RecallSample::borders() const {
    const std::lock_guard lock(mutex_);
    PairCounts counts(manifest_.count());
    for (std::int64_t i = 0; i < count(); ++i)
        for (int j = 0; j < at_; ++j)
            if (const std::int64_t id = truth_.ids[std::size_t(i * at_ + j)]; id >= 0)
                counts.add(manifest_.shard_of(objects_[std::size_t(i)]), manifest_.shard_of(id));
    return counts;
}

RecallEstimate RecallSample::estimate() const {
    const std::lock_guard lock(mutex_);
    return detail::estimate_recall(base_.n, base_.d, view_of(lists_), view_of(truth_));
}

}  // namespace gnnd::shards
