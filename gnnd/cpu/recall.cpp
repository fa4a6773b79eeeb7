// SPDX-License-Identifier: MIT
#include "gnnd/cpu/recall.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gnnd/cpu/insert.h"
#include "gnnd/detail/recall.h"

namespace gnnd::cpu {
namespace {

/// Sampled at first. Where they do not decide, as many as promise to, but at least kMore of what there is in addition.
constexpr std::size_t kFirstObjects = 256;
constexpr double kMore = 0.25;

}  // namespace

Measurement::Measurement(const Space& space, const Team& team, const BuildParams& params,
                         const detail::ObjectRange& part, Resources& resources, std::int64_t most)
    : space_(space),
      team_(team),
      resources_(resources),
      count_(part.count),
      at_(int(std::min<std::int64_t>(detail::recall_at_of(params), space.vectors.n - 1))),
      target_(params.recall),
      objects_(detail::sample_in_any_order(
          part.count, std::min(most, detail::objects_that_show(double(params.recall), part.count)), params.seed)) {
    for (std::int32_t& object : objects_) object += std::int32_t(part.first);
}

void Measurement::add_truth(std::size_t end) {
    const std::size_t begin = limits_.size(), added = end - begin;
    const KnnGraph truth = nearest_among(space_, team_, objects_.data() + begin, std::int64_t(added), nullptr,
                                         space_.vectors.n, at_, resources_);
    const double equal = detail::rounding_factor(space_.metric, space_.vectors.d);
    for (std::size_t i = 0; i < added; ++i)
        limits_.push_back(space_.key_of(float(equal * double(truth.distances()[(i + 1) * std::size_t(at_) - 1]))));
}

detail::RecallCount Measurement::count(const FirstIds& first_ids) {
    const auto objects = std::int64_t(limits_.size());
    std::vector<int> found(limits_.size());
    std::vector<Block> blocks;
    for (int t = 0; t < team_.threads; ++t) blocks.emplace_back(space_, 1, at_, resources_);
    team_.for_chunks(objects, 64, [&](int thread, std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> ids(at_);
        for (std::int64_t i = begin; i < end; ++i) {
            first_ids(objects_[i], at_, ids.data());
            const int known = int(std::find(ids.begin(), ids.end(), -1) - ids.begin());
            // Values of a given graph may have been rounded otherwise: they are computed again.
            blocks[thread].compute(&objects_[i], 1, ids.data(), known);
            const float* keys = blocks[thread].row(0);
            found[i] = int(std::count_if(keys, keys + known, [&](float key) { return key <= limits_[i]; }));
        }
    });
    detail::RecallCount counted{count_, objects, at_};
    for (const int one : found) counted.add(one);
    return counted;
}

RecallEstimate Measurement::measure(const FirstIds& first_ids, double worth) {
    const auto start = std::chrono::steady_clock::now();
    const auto all = double(objects_.size());
    if (limits_.empty()) add_truth(std::min(objects_.size(), kFirstObjects));
    for (;;) {
        const detail::RecallCount counted = count(first_ids);
        const RecallEstimate here = detail::estimate_recall(counted);
        const auto seen = double(counted.objects);
        const bool above = here.value > target_;
        const double needed =
            detail::objects_to_rule_out(counted, target_, above ? detail::kLowFails : detail::kHighFails);
        const bool is_worth = std::isinf(worth) || (above && needed - seen <= worth);
        if (seen == all || detail::is_decided(here, target_) || !is_worth) {
            seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            return here;
        }
        add_truth(std::size_t(std::min(all, std::ceil(std::clamp(needed, (1 + kMore) * seen, 2 * seen)))));
    }
}

}  // namespace gnnd::cpu
