// SPDX-License-Identifier: MIT
#include <algorithm>

#include "gnnd/cuda/append/raise_recall.h"
#include "gnnd/cuda/build.h"
#include "gnnd/cuda/recall/recall.h"
#include "gnnd/detail/insert.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

/// Objects of either part that are measured at first. A sweep compares many times as many pairs in the time of one
/// distance of a search, so that this stays a part of what the searches take.
std::int64_t sample_after(std::int64_t added, std::int64_t n) {
    constexpr double kGain = 8;
    return std::min(detail::measured_after(added, n, kGain, detail::kEnoughMeasured), detail::kRecallObjects);
}
/// And where these have less than was asked for, but leave open whether all have. To refine takes as long as to compare
/// a hundred thousand.
std::int64_t larger_sample_after(std::int64_t added, std::int64_t n) {
    constexpr std::int64_t kTimes = 4;
    return std::min(kTimes * sample_after(added, n), detail::kRecallObjects);
}

/// Measures the old and the added objects apart. \return the part that has less than was asked for, if one has
detail::ObjectRange measure(const detail::Input& whole, std::int64_t added, const BuildParams& params,
                            Resources& resources, cudaStream_t stream, BuildStats& stats) {
    const std::int64_t old = whole.n() - added;
    const KnnGraphView& graph = whole.graphs[0];
    const auto* ids = reinterpret_cast<const u32*>(graph.ids);
    Stopwatch watch(stream);
    RecallEstimate of_old;
    {
        const Stopwatch::Piece piece(watch);
        const SweptSet set(whole, params.metric, resources, stream);
        const auto measured = [&](const detail::ObjectRange& part) {
            const int k = int(graph.k);
            const std::int64_t most = larger_sample_after(added, whole.n());
            RecallMeter meter(set.space(), params, part, most, resources, watch, stream,
                              sample_after(added, whole.n()));
            meter.find_truth(ids, k, k);
            meter.start(ids, k, k);
            RecallEstimate recall = meter.estimate();
            if (recall.value < params.recall && !detail::is_decided(recall, params.recall) && meter.may_grow()) {
                meter.grow(most, ids, k, k);
                meter.start(ids, k, k);
                recall = meter.estimate();
            }
            return recall;
        };
        of_old = measured({0, old});
        stats.recall_added = measured({old, added});
    }
    stats.recall = detail::join_recalls(of_old, old, stats.recall_added, added);
    stats.recall_seconds += watch.seconds();
    return detail::part_below(of_old, old, stats.recall_added, added, params.recall);
}

}  // namespace

std::size_t bytes_of_measuring(const VectorView& all, std::int64_t added, const BuildParams& params) {
    const detail::Input input{{all}, {}};
    return SweptSet::bytes(input, true, params.metric) +
           RecallMeter::bytes(SweptSet::shape(input, true, params.metric), params, larger_sample_after(added, all.n));
}

void raise_recall(const detail::Input& whole, std::int64_t added, std::int32_t* ids, float* distances, std::size_t held,
                  const BuildParams& params, const Callbacks& callbacks, Resources& resources, cudaStream_t stream,
                  BuildStats& stats) {
    detail::Input input = whole;
    input.held = measure(whole, added, params, resources, stream, stats);
    if (input.held.count == 0 && params.recall < 1) return;
    BuildParams refining = params;
    if (params.device_memory != 0)
        refining.device_memory = std::max<std::int64_t>(1, params.device_memory - std::int64_t(held));
    const BuildStats searched = stats;
    std::int64_t peak = stats.peak_work_bytes;
    try {
        std::int64_t refined = -1;
        const auto other_lacks = [&] {
            return stats.stop == StopReason::recall && input.held.count != 0 && input.held.first != refined;
        };
        for (int part = 0; part == 0 || (part == 1 && other_lacks()); ++part) {
            refined = input.held.first;
            build(input, refining, detail::resolve(refining, input, refining.device), callbacks, resources, ids,
                  distances, stats);
            const int parts = stats.choices.parts;
            stats.choices = searched.choices;
            stats.choices.parts = parts;
            peak = std::max(peak, stats.peak_work_bytes);
            input.held = measure(whole, added, params, resources, stream, stats);
        }
        stats.peak_work_bytes = peak;
    } catch (const OutOfDeviceMemory&) {
        if (params.recall == 1) throw;
        stats = searched;
        stats.stop = StopReason::recall_missed;
    }
}

}  // namespace gnnd::cuda
