#include "gnnd/cuda/append/plan.h"

#include <algorithm>
#include <string>

#include "gnnd/cuda/memory/layout.h"
#include "gnnd/detail/insert.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

constexpr std::int64_t kMostAtOnce = 16384, kLeastAtOnce = 256;
constexpr std::int64_t kGroup = 256;  // of nearest.cuh
constexpr int kMostOfGroup = 16;
/// What share_of() never exceeds.
constexpr std::int64_t kMostLinks =
    std::max(2 * std::max(kPeers, kStarts), std::max(kMostAtOnce, kInsertPivots) / kGroup);
static_assert(kMostLinks <= detail::kBranches);  // what a search looks at in one go

}  // namespace

Share share_of(std::int64_t objects, std::int64_t wanted) {
    const std::int64_t groups = (objects + kGroup - 1) / kGroup;
    const int of_group = int(std::clamp<std::int64_t>((wanted + groups - 1) / groups, 1, kMostOfGroup));
    return {of_group, int(groups) * of_group};
}

InsertPlan make_insert_plan(const detail::Input& input, const InsertInPlace& in_place, const BuildParams& params,
                            std::size_t free) {
    const std::int64_t old = input.vectors[0].n, added = input.vectors[1].n, n = input.n(), d = input.d();
    const std::int64_t k = params.k, kept = std::min<std::int64_t>(k, input.graphs[0].k);
    const std::int64_t row = d * std::int64_t(size_of(input.dtype()));
    InsertPlan plan;
    plan.sample = form_of(input.vectors[0], false, params.metric);
    plan.length = detail::kept_by(detail::beam_for(old, added), params.k, old, added);
    const auto lay_out = [&](std::int64_t batch) {
        plan.batch = batch;
        Layout layout;
        for (int set = 0; set < 2; ++set)
            if (!in_place.vectors[set]) plan.vectors[set] = layout.take(input.vectors[set].n * row);
        if (!in_place.result) {
            plan.graph_ids = layout.take(n * k * 4);
            plan.graph_distances = layout.take(n * k * 4);
        }
        if (!in_place.graph && kept != k) plan.given = layout.take(old * kept * 8);
        if (detail::links_back(old, added)) {
            plan.back = layout.take(old * detail::kBackLinks * 4);
            plan.reach = layout.take(old * 4);
        }
        plan.counts = layout.take(n * 4);
        plan.ends = layout.take(n * 8 + 8);
        plan.found = layout.take(batch * plan.length * 8);
        plan.slots = layout.take(batch * plan.length * 4);
        plan.offers = layout.take(batch * plan.length * 8);
        const std::int64_t sample = batch + kInsertPivots;
        plan.objects = layout.take(sample * 4);
        plan.gathered = layout.take(sample * row);
        if (!plan.sample.vectors_in_place) plan.rows = layout.take(sample * plan.sample.row_bytes);
        plan.bias = layout.take(sample * 4);
        plan.mean = layout.take(d * 8);
        plan.starts = layout.take(batch * kMostLinks * 4);
        plan.peers = layout.take(batch * kMostLinks * 4);
        plan.small = layout.take(kSmallBytes);
        plan.total = layout.end_;
    };
    const auto cap = std::size_t(params.device_memory);
    const auto fits = [&](std::size_t limit) { return limit == 0 || plan.total <= limit; };
    std::int64_t batch = std::min(added, kMostAtOnce);
    lay_out(batch);
    while (batch > kLeastAtOnce && !(fits(cap) && fits(free))) lay_out(batch = std::max(batch / 2, kLeastAtOnce));
    if (!fits(cap) || !fits(free))
        throw OutOfDeviceMemory("append needs at least " + std::to_string(plan.total) + " bytes of device memory, " +
                                (fits(cap) ? std::to_string(free) + " are free"
                                           : std::to_string(cap) + " are allowed by BuildParams::device_memory"));
    return plan;
}

}  // namespace gnnd::cuda
