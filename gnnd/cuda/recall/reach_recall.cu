// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "gnnd/cuda/iterations.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/piece.h"
#include "gnnd/cuda/recall/reach_recall.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

// Chosen by measurement (benchs/NOTEBOOK.md).
/// Lists get kLonger times as long, and at least kLong, at most kRounds times. That takes about as long as
/// kIterationsLeft of the slowest iterations.
constexpr int kLonger = 2, kLong = 128, kRounds = 2;
constexpr double kIterationsLeft = 12;
/// Where these settle they lack one part in so many of what shorter ones did; else they get longer again, which makes
/// it so many times the iterations.
constexpr double kGain = 5, kTwoRounds = 5;
/// Where more is missing longer lists are not tried, or where time must not decide more than kHopeless.
constexpr double kWithoutHope = 0.5;
/// To finish fewer entries is worthwhile where it saves so many bytes that are read. Of what may be missing one part in
/// kMissedLast may be lost by it, of all columns, which are measured on fewer objects, kAllMissed of these.
constexpr double kWorthwhile = 4e9, kMissedLast = 50, kAllMissed = 10;
/// So many times the objects are measured where the first ones do not tell.
constexpr std::int64_t kSharper = 4;

/// \param settles, allowed  the shares of true neighbours that lists lack where they settle, and may lack
double seconds_of_longer_lists(const BuildStats& stats, double settles, double allowed) {
    double slowest = 0;
    for (const IterationStats& iteration : stats.iterations)
        if (iteration.iteration > 0) slowest = std::max(slowest, iteration.seconds);
    return kIterationsLeft * slowest * (settles > kGain * allowed ? kTwoRounds : 1);
}

/// The nearest k of a list are among so many of its first entries, as far as the meter's objects tell: what is compared
/// orders the others wrongly by little. To finish one reads its row, which takes long where rows are.
int entries_to_finish(const BuildState& state, RecallMeter& meter) {
    const Lists& lists = state.lists;
    const int k = state.params.k;
    const double bytes = double(state.n) * double(state.raw.d) * double(size_of(state.raw.dtype));
    if (state.form.exact_distances || lists.segments != 1 || !meter.has_truth()) return lists.length;
    const auto found = [&](int width) {
        meter.start(lists.ids, lists.length, width);
        return std::pair(meter.estimate().value, meter.estimate_all().value);
    };
    const double least = (1 - double(state.params.recall)) / kMissedLast;
    std::optional<std::pair<double, double>> whole;
    for (const double beyond : {1.25, 1.5, 2.0}) {
        const int width = int(std::ceil(beyond * k));
        if (double(lists.length - width) * bytes < kWorthwhile) break;
        if (!whole) whole = found(lists.length);
        const auto [counted, all] = found(width);
        if (whole->first - counted <= least && whole->second - all <= kAllMissed * least) return width;
    }
    return lists.length;
}

/// Measures rows of ids that are the graph, or lists that hold it: on all objects of the sample, or more, where a part
/// of them does not tell.
/// \param stride, width  of the rows, of which so many entries count
/// \return whether it has the recall that was asked for
bool measure(BuildState& state, const u32* ids, int stride, int width, RecallMeter& meter, BuildStats& stats) {
    const Stopwatch::Piece piece(meter.watch());
    const auto estimate = [&](RecallMeter& with) {
        if (!with.has_truth()) with.find_truth(ids, stride, width, codes_to_sweep(state));
        with.start(ids, stride, width);
        stats.recall = with.estimate();
    };
    const double wanted = double(state.params.recall);
    estimate(meter);
    if (meter.may_grow() && !detail::is_decided(stats.recall, wanted)) {
        meter.grow(detail::kAnyNumber, ids, stride, width);
        estimate(meter);
    }
    stats.recall_all = meter.estimate_all();
    constexpr std::int64_t kObjects = kSharper * detail::kRecallObjects;
    SweepSpace space = sweep_space_of(state, meter.taken());
    const std::size_t bytes = RecallMeter::bytes(space, state.params, kObjects);
    const bool more = stats.recall.objects < kObjects * 3 / 4 &&  // fewer more tell no more
                      !state.params.deterministic &&              // which what is free must not decide about
                      space.spare >= bytes;
    if (more && !detail::is_decided(stats.recall, wanted)) {
        space.spare -= bytes;
        RecallMeter sharper(space, state.params, state.input.measured(), kObjects, state.resources, meter.watch(),
                            state.stream);
        estimate(sharper);
    }
    return detail::is_reached(stats.recall, wanted);
}

/// Of a merge the set that is held to the recall apart has it, by the mean of some of its objects.
bool smaller_reached(BuildState& state, const RecallMeter& meter) {
    const detail::ObjectRange part = detail::held_apart(state.input);
    if (part.count == 0) return true;
    const Stopwatch::Piece piece(meter.watch());
    RecallMeter apart(sweep_space_of(state, meter.taken()), state.params, part, detail::kEnoughMeasured,
                      state.resources, meter.watch(), state.stream);
    const auto* graph = reinterpret_cast<const u32*>(state.ids);
    apart.find_truth(graph, state.params.k, state.params.k, codes_to_sweep(state));
    apart.start(graph, state.params.k, state.params.k);
    return detail::is_reached(apart.estimate(), double(state.params.recall));
}

/// The codes that all pairs are compared in first, if any: of a projection unless a meter has found that it loses too
/// much.
/// \param form  that the meter has ended with
std::optional<SweepForm> first_codes(const BuildState& state, std::optional<SweepForm> form) {
    if (projection_keeps_most(state) && (!form || form == SweepForm::projections)) return SweepForm::projections;
    if (may_sweep_codes(state.plan.packed, state.params.metric, state.raw.d)) return SweepForm::codes;
    return std::nullopt;
}

/// Compares the pairs that count with this border against the last distances of what is there.
/// \param meter  null: none
void compare_pairs(BuildState& state, const RecallMeter* meter, const Callbacks& callbacks,
                   const detail::Pairs& pairs) {
    SweepSpace space = sweep_space_of(state, meter != nullptr ? meter->taken() : 0);
    space.border = pairs.border;
    const Lists lists{.ids = reinterpret_cast<u32*>(state.ids),
                      .distances = state.distances,
                      .bounds = state.lists.bounds,
                      .length = state.params.k,
                      .segments = 1};
    open_graph(state.params.metric, lists, state.n, state.stream);
    const Part& part = state.plan.all_pairs;
    Piece memory(state.memory + part.offset, part.bytes, true, state.resources);
    std::optional<SweepForm> form;
    if (meter != nullptr && meter->has_truth()) form = meter->form_of_all_pairs();
    const std::optional<SweepForm> codes = first_codes(state, form);
    // Now, for what projecting takes lies where all pairs will be compared, as does the projection itself.
    if (codes == SweepForm::projections) use_projection(state);
    Sweep sweep(space, state.params.k, memory, state.stream);
    if (codes) sweep.begin_with(*codes);
    sweep.make_exact(lists, form, callbacks);
    state.has_projection = false;
    close_graph(state.params.metric, lists, state.n, state.stream);
}

/// Goes on from the lists (or the graph) with longer ones, which have room for more to compare; of a merge from the
/// whole as one set: what is missing may be missing anywhere, and of what longer lists hold beyond the graphs they know
/// nothing.
/// \param form  what is compared
/// \return false where the memory does not hold them, and where there are so few objects that all pairs take less
bool lengthen(BuildState& state, const KnnGraphView& lists, int length, const VectorForm& form, RecallMeter& meter,
              const Callbacks& callbacks, BuildStats& stats) {
    BuildParams params = state.params;
    params.list_size = length;
    params.samples = std::min(length / 2, kMaxGpuSamples);
    const detail::Input input{{{state.raw.data, state.n, state.raw.d, state.raw.dtype, state.raw.stride}, {}},
                              {lists, {}}};
    const InPlace in_place{true, {true, false}, true};
    Choices choices = detail::resolve(params, input, params.device);
    if (choices.exhaustive) return false;
    choices.codes = codes_in(form);
    const std::size_t held = state.plan.total + state.plan.beside + meter.taken(),
                      free = state.resources.free_device_memory();
    try {
        BuildPlan plan = make_build_plan(input, in_place, params, choices, sort_bytes(state.n), held, 0,
                                         free == 0 ? 0 : free + held);  // 0: not known
        const DeviceMemory memory(state.resources, plan.total, state.stream);
        const Drain drain(state.stream);
        BuildState longer = make_state(input, params, choices, plan, true, state.resources, memory.data(), state.stream,
                                       state.ids, state.distances);
        longer.visit = state.visit;
        use_form(longer, form);
        Iterations(longer, callbacks, stats).run(&meter, !params.deterministic);
        finish(longer, entries_to_finish(longer, meter));
        state.settles = longer.settles;
        stats.peak_work_bytes = std::max(stats.peak_work_bytes, std::int64_t(state.plan.work_bytes() + plan.total));
        stats.choices.list_size = length;
        stats.choices.samples = choices.samples;
        stats.choices.codes = choices.codes;
        return true;
    } catch (const OutOfDeviceMemory&) {
        return false;
    }
}

}  // namespace

std::size_t bytes_beside(const detail::Input& input, const InPlace& in_place, const BuildParams& params) {
    if (params.recall == 0) return 0;
    const SweepSpace shape = SweptSet::shape(input, in_place.vectors, params.metric);
    const bool apart = detail::held_apart(input).count != 0;
    return RecallMeter::bytes_of_build(shape, params, input.measured().count) +
           (apart ? RecallMeter::bytes(shape, params, detail::kEnoughMeasured) : 0);
}

std::size_t bytes_of_all_pairs(const detail::Input& input, const InPlace& in_place, const BuildParams& params) {
    if (!input.exact && (params.recall == 0 || detail::limits_work(params))) return 0;
    return Sweep::bytes_of_all(SweptSet::shape(input, in_place.vectors, params.metric), params.k);
}

void finish(const BuildState& state, int width) {
    FinishArgs finishing{.vectors = state.raw,
                         .exact_distances = state.form.exact_distances,
                         .lists = state.lists,
                         .width = width,
                         .set_aside = {},
                         .visit = state.form.exact_distances ? nullptr : state.visit,
                         .k = state.params.k,
                         .seed = state.seed_of(0x30000u),
                         .info = state.info,
                         .ids = state.ids,
                         .distances = state.distances};
    for (int set = 0; state.input.merges() && set < 2; ++set) finishing.set_aside[set] = set_aside_columns(state, set);
    finish(finishing, state.params.metric, state.stream);
}

bool may_compare_all_pairs(const BuildState& state) {
    return state.plan.all_pairs.bytes != 0;
}

void compare_all_pairs(BuildState& state, const RecallMeter* meter, const Callbacks& callbacks, BuildStats& stats) {
    compare_pairs(state, meter, callbacks, state.input.all_pairs());
    stats.stop = StopReason::exact;
}

void reach_recall(BuildState& state, RecallMeter& meter, const Callbacks& callbacks, BuildStats& stats) {
    // Codes that the first tree did not find too coarse are good for longer lists, too; the last round does without.
    const VectorForm plain = state.plan, form = state.coarse ? plain : state.form;
    const auto* graph = reinterpret_cast<const u32*>(state.ids);
    int length = state.lists.length, width = length;
    // Lists become a graph, which takes long rows of floats long, once it is known that they stay what they are. Of a
    // merge they need not hold it all.
    bool finished = detail::sets_aside(state.input, state.params);
    bool reached = false;
    if (finished) {
        finish(state, width);
        reached = measure(state, graph, state.params.k, state.params.k, meter, stats);
    } else {
        width = entries_to_finish(state, meter);
        reached = measure(state, state.lists.ids, length, width, meter, stats);
    }
    for (int round = 0; round < kRounds && !reached && !detail::limits_lists(state.params); ++round) {
        const bool may_compare = may_compare_all_pairs(state);
        length = std::max(kLonger * length, kLong);
        // Chance decides which way takes less time, and the graph of a deterministic build must not depend on.
        const bool timed = !state.params.deterministic;
        const double missing = 1 - stats.recall.value, all_pairs = meter.seconds_of_all_pairs();
        const double predicted =
            seconds_of_longer_lists(stats, std::min(missing, state.settles), meter.may_be_missing());
        const bool faster = timed && all_pairs < predicted;
        const bool hopeless = missing > (timed ? kWithoutHope : kHopeless);
        if (may_compare && (faster || hopeless)) break;
        if (length > kMaxK) break;
        KnnGraphView from{state.n, state.params.k, state.params.metric, state.ids, state.distances};
        if (!finished) {
            make_ids_plain(state.lists, state.n, state.stream);
            from.k = state.lists.length;
            from.ids = reinterpret_cast<const std::int32_t*>(state.lists.ids);
        }
        // Longer lists are measured on the whole sample.
        if (meter.may_grow())
            meter.grow(detail::kAnyNumber, reinterpret_cast<const u32*>(from.ids), int(from.k), int(from.k));
        if (!lengthen(state, from, length, round + 1 < kRounds ? form : plain, meter, callbacks, stats)) break;
        finished = true;
        reached = measure(state, graph, state.params.k, state.params.k, meter, stats);
    }
    if (!finished) finish(state, width);
    if (reached && !smaller_reached(state, meter)) {
        reached = false;
        if (may_compare_all_pairs(state)) {  // those across are few where objects are
            compare_pairs(state, &meter, callbacks, state.input.pairs());
            measure(state, graph, state.params.k, state.params.k, meter, stats);
            reached = smaller_reached(state, meter);
        }
    }
    if (reached) {
        stats.stop = StopReason::recall;
    } else if (may_compare_all_pairs(state)) {
        compare_all_pairs(state, &meter, callbacks, stats);
    } else {
        stats.stop = StopReason::recall_missed;
    }
}

}  // namespace gnnd::cuda
