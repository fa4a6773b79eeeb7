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

/// Objects of either part that are measured. A sweep compares many times as many pairs in the time of one distance of a
/// search, so that this stays a part of what the searches take.
std::int64_t sample_after(std::int64_t added, std::int64_t n) {
    constexpr double kGain = 8;
    return std::min(detail::measured_after(added, n, kGain, detail::kEnoughMeasured), detail::kRecallObjects);
}

RecallEstimate measure_part(const SweptSet& set, const KnnGraphView& graph, const MeasuredPart& part,
                            const BuildParams& params, Resources& resources, Stopwatch& watch, cudaStream_t stream) {
    RecallMeter meter(set.space(), params, part, resources, watch, stream);
    const auto* ids = reinterpret_cast<const u32*>(graph.ids);
    meter.find_truth(ids, int(graph.k), int(graph.k));
    meter.start(ids, int(graph.k), int(graph.k));
    return meter.estimate();
}

/// \return whether a part has less than was asked for
bool measure(const detail::Input& whole, std::int64_t added, const BuildParams& params, Resources& resources,
             cudaStream_t stream, BuildStats& stats) {
    const std::int64_t old = whole.n() - added, sample = sample_after(added, whole.n());
    const KnnGraphView& graph = whole.graphs[0];
    Stopwatch watch(stream);
    RecallEstimate here;
    {
        const Stopwatch::Piece piece(watch);
        const SweptSet set(whole, params.metric, resources, stream);
        here = measure_part(set, graph, {0, old, sample}, params, resources, watch, stream);
        stats.recall_added = measure_part(set, graph, {old, added, sample}, params, resources, watch, stream);
    }
    stats.recall = detail::join_recalls(here, old, stats.recall_added, added);
    stats.recall_seconds += watch.seconds();
    return detail::is_below(here, params.recall) || detail::is_below(stats.recall_added, params.recall);
}

}  // namespace

std::size_t bytes_of_measuring(const VectorView& all, std::int64_t added, const BuildParams& params) {
    const detail::Input input{{all}, {}};
    return SweptSet::bytes(input, true, params.metric) +
           RecallMeter::bytes(SweptSet::shape(input, true, params.metric), params, sample_after(added, all.n));
}

void raise_recall(const detail::Input& whole, std::int64_t added, std::int32_t* ids, float* distances, std::size_t held,
                  const BuildParams& params, const Callbacks& callbacks, Resources& resources, cudaStream_t stream,
                  BuildStats& stats) {
    if (!measure(whole, added, params, resources, stream, stats) && params.recall < 1) return;
    BuildParams refining = params;
    if (params.device_memory != 0)
        refining.device_memory = std::max<std::int64_t>(1, params.device_memory - std::int64_t(held));
    const BuildStats searched = stats;
    try {
        build(whole, refining, detail::resolve(refining, whole, refining.device), callbacks, resources, ids, distances,
              stats);
        stats.recall_seconds += searched.recall_seconds;
        stats.peak_work_bytes = std::max(stats.peak_work_bytes, searched.peak_work_bytes);
        const int parts = stats.choices.parts;
        stats.choices = searched.choices;
        stats.choices.parts = parts;
        measure(whole, added, params, resources, stream, stats);
    } catch (const OutOfDeviceMemory&) {
        if (params.recall == 1) throw;
        stats = searched;
        stats.stop = StopReason::recall_missed;
    }
}

}  // namespace gnnd::cuda
