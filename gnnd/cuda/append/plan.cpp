// SPDX-License-Identifier: MIT
#include "gnnd/cuda/append/plan.h"

#include <algorithm>

#include "gnnd/cuda/memory/layout.h"
#include "gnnd/detail/insert.h"

namespace gnnd::cuda {
namespace {

constexpr std::int64_t kMostAtOnce = 16384, kLeastAtOnce = 256;
constexpr int kMostOfGroup = 16;
/// An object belongs into k rows on average. Of many more that take it in the first are enough, or two for each column.
constexpr int kOffers = 512;
/// The most that quota_for() says.
constexpr std::int64_t kMostLinks =
    std::max(2 * std::max(kPeers, kStarts), std::max(kMostAtOnce, kInsertPivots) / kColumnGroup);
static_assert(kMostLinks <= detail::kBranches);  // what a search looks at in one go

}  // namespace

Quota quota_for(std::int64_t objects, std::int64_t wanted) {
    const std::int64_t groups = (objects + kColumnGroup - 1) / kColumnGroup;
    const int of_group = int(std::clamp<std::int64_t>((wanted + groups - 1) / groups, 1, kMostOfGroup));
    return {of_group, int(groups) * of_group};
}

AppendPlan make_append_plan(const detail::Input& input, const InsertInPlace& in_place, const BuildParams& params,
                            std::size_t afterwards, std::size_t free) {
    const std::int64_t old = input.vectors[0].n, added = input.vectors[1].n, n = input.n(), d = input.d();
    const std::int64_t k = params.k, kept_columns = std::min<std::int64_t>(k, input.graphs[0].k);
    const std::int64_t row = d * std::int64_t(size_of(input.dtype()));
    AppendPlan plan;
    plan.sample = form_of(input.vectors[0], false, params.metric);
    plan.length = std::max(detail::beam_for(old, added), params.k);
    plan.offers_each = std::max(kOffers, 2 * params.k);
    const auto lay_out = [&](std::int64_t batch) {
        plan.batch = batch;
        Layout kept, layout;
        if (!in_place.vectors[0] && !in_place.vectors[1]) {
            plan.vectors[0] = plan.vectors[1] = kept.take(n * row);
            plan.vectors[0].bytes = std::size_t(old * row);
            plan.vectors[1].bytes -= plan.vectors[0].bytes;
            plan.vectors[1].offset += plan.vectors[0].bytes;
        } else {
            for (int set = 0; set < 2; ++set)
                if (!in_place.vectors[set]) plan.vectors[set] = kept.take(input.vectors[set].n * row);
        }
        if (!in_place.result) {
            plan.graph_ids = kept.take(n * k * 4);
            plan.graph_distances = kept.take(n * k * 4);
        }
        if (!in_place.graph && kept_columns != k) plan.given = layout.take(old * kept_columns * 8);
        if (detail::links_back(old, added)) {
            plan.back = layout.take(old * detail::kBackLinks * 4);
            plan.reach = layout.take(old * 4);
        }
        plan.counts = layout.take(n * 4);
        plan.offsets = layout.take(n * 8 + 8);
        plan.met = layout.take(batch * plan.offers_each * 8);
        plan.offer_numbers = layout.take(batch * plan.offers_each * 4);
        plan.offers = layout.take(batch * plan.offers_each * 8);
        const std::int64_t sample = batch + kInsertPivots;
        plan.objects = layout.take(sample * 4);
        plan.gathered = layout.take(sample * row);
        if (!plan.sample.vectors_in_place) plan.rows = layout.take(sample * plan.sample.row_bytes);
        plan.bias = layout.take(sample * 4);
        plan.mean = layout.take(d * 8);
        plan.starts = layout.take(batch * kMostLinks * 4);
        plan.peers = layout.take(batch * kMostLinks * 4);
        plan.small = layout.take(kSmallBytes);
        plan.kept = kept.end_;
        plan.work = layout.end_;
        plan.total = plan.kept + std::max(plan.work, afterwards);
    };
    const MemoryLimits limits{std::size_t(params.device_memory), free};
    lay_out_to_fit(
        std::min(added, kMostAtOnce), kLeastAtOnce, lay_out, [&] { return limits.hold(plan.total); },
        [](std::int64_t batch) { return batch / 2; });
    limits.check("append", plan.total);
    return plan;
}

}  // namespace gnnd::cuda
