// SPDX-License-Identifier: MIT
// build(), refine(), merge() and append() on a GPU: where each goes, and what comes before and after the iterations.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "gnnd/cuda/all_pairs/exhaustive.h"
#include "gnnd/cuda/all_pairs/from_nothing.h"
#include "gnnd/cuda/all_pairs/in_parts.h"
#include "gnnd/cuda/append/insert.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/build.h"
#include "gnnd/cuda/iterations.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/recall/reach_recall.h"
#include "gnnd/cuda/runtime/callbacks.h"
#include "gnnd/cuda/space/projection.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/predict.h"
#include "gnnd/detail/resolve.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

void check_places(const detail::Input& input, const void* ids, const void* distances, int device) {
    detail::check_reach({Device::Kind::cuda, device}, {input.vectors[0].data, input.vectors[1].data, ids, distances});
    if (device_of(ids) != device_of(distances))
        throw InvalidArgument("build_into: ids and distances lie in different memories");
}

void check_update(Update update) {
    if (update != Update::automatic && !has_variants())
        throw Unavailable("update '" + std::string(name_of(update)) +
                          "' is not compiled for GPUs here (GNND_CUDA_VARIANTS), update 'auto' is");
}

/// A quick graph, to compare all pairs against its last distances.
BuildParams for_bounds(const BuildParams& params) {
    BuildParams quick = params;
    if (params.iterations == BuildParams{}.iterations) quick.iterations = detail::iterations_for_bounds(params.k);
    quick.recall = 0;
    return quick;
}

/// \param quick  nothing is measured, but codes lose nothing either: what they miss the comparison finds
Choices choices_for_bounds(detail::Input input, BuildParams quick) {
    input.exact = false;
    Choices choices = detail::resolve(quick, input, quick.device);
    quick.recall = BuildParams{}.recall;
    choices.codes = detail::resolve(quick, input, quick.device).codes;
    return choices;
}

/// The same where all pairs are compared, whether a call or a recall of 1 asked for it.
detail::Input all_pairs_of(detail::Input input) {
    input.exact = true;
    return input;
}

/// \param choices  changed where the memory does not hold what a high recall asks for
BuildPlan plan_gnnd(const detail::Input& input, const InPlace& in_place, const BuildParams& params, std::size_t free,
                    Choices& choices) {
    const auto plan = [&](std::size_t there) {
        return make_build_plan(input, in_place, params, choices, sort_bytes(input.n()),
                               bytes_beside(input, in_place, params), bytes_of_all_pairs(input, in_place, params),
                               there);
    };
    BuildParams modest = params;
    for (const float recall : {BuildParams{}.recall, 0.0F}) {
        if (modest.recall <= recall) continue;
        try {
            plan(params.deterministic ? 0 : free);  // what is free must not decide then; 0: any number
            break;
        } catch (const OutOfDeviceMemory&) {
            modest.recall = recall;
            choices = detail::resolve(modest, input, params.device);
        }
    }
    return plan(free);
}

/// Lists have settled with less recall than was asked for: what their rows have lost may be what is missing. They start
/// again from the neighbours that they have.
/// \param form  what is compared from now on
void go_on_in(BuildState& state, const VectorForm& form, const Callbacks& callbacks, RecallMeter* meter,
              bool may_give_up, BuildStats& stats) {
    make_ids_plain(state.lists, state.n, state.stream);
    // Samples are not needed before the lists have started again. They have places for 4 p.
    auto* ids = reinterpret_cast<std::int32_t*>(state.samples.ids);
    state.lists.segments = 1;
    state.restart = ids;
    state.restart_width = std::min(state.lists.length, 4 * state.samples.p);
    const std::size_t width = std::size_t(state.restart_width) * sizeof(u32),
                      row = std::size_t(state.lists.length) * sizeof(u32);
    GNND_CUDA(cudaMemcpy2DAsync(ids, width, state.lists.ids, row, width, std::size_t(state.n), cudaMemcpyDeviceToDevice,
                                state.stream));
    use_form(state, form);
    GNND_CUDA(cudaMemsetAsync(state.stop, 0, sizeof(StopFlag), state.stream));
    Iterations(state, callbacks, stats).run(meter, may_give_up);
}

/// Steps 1 to 4 with rows as short as the vectors and the recall that is asked for allow: of a projection first, then
/// of all components, each a byte, then of float16.
/// \param meter  null: nothing tells how good lists are
void iterate_from_short_rows(BuildState& state, const Callbacks& callbacks, RecallMeter* meter, bool may_give_up,
                             BuildStats& stats) {
    const Codes codes = state.form.packed == PackedType::f16 ? state.choices.codes : Codes::none;
    // Lists that all pairs are compared against are measured by nobody.
    const bool judged = meter != nullptr || state.input.exact;
    bool project = codes == Codes::pca || (judged && may_project(codes, state.n, state.raw.d));
    if (project && state.input.exact) {
        make_projection(state);
        project = projection_keeps_most(state);
    }
    if (project)
        use_projection(state);
    else if (codes != Codes::none)
        use_codes(state);
    Iterations iterations(state, callbacks, stats);
    iterations.run(meter, may_give_up);
    if (iterations.needs_finer_rows() && !state.input.exact && int(stats.iterations.size()) <= state.params.iterations)
        go_on_in(state, code_form(state.raw.d), callbacks, meter, may_give_up, stats);
    if (state.form.codes && state.coarse && meter != nullptr && stats.stop == StopReason::converged)
        go_on_in(state, state.plan, callbacks, meter, may_give_up, stats);
}

/// Bytes of a row of floats as lists are most likely built of it; 0: of float16, beside which codes that are one tile
/// gain little, and of whose time a multiple was measured for codes with the most samples.
std::int64_t bytes_in_lists(const Choices& choices, std::int64_t n, std::int64_t d) {
    if (may_project(choices.codes, n, d)) return projected_form().row_bytes;
    const int bytes = code_form(d).row_bytes;
    return choices.codes != Codes::none && choices.samples < kMaxGpuSamples && bytes > kTileBytes ? bytes : 0;
}

/// Split rows are three products of float16 each, which take as long as rows of three times as many.
constexpr int kSplitProducts = 3;

/// \param swept  what all pairs are compared in: codes or float16, whichever takes less, if none is given
detail::GpuPrediction predict(const detail::Input& input, const BuildParams& params, const Choices& choices,
                              std::optional<SweepForm> swept = {}) {
    const bool has_rates = swept != SweepForm::projections && swept != SweepForm::floats;
    if (!detail::is_predictable(params.metric) || !has_rates) return {};
    const VectorForm form = form_of(input.vectors[0], false, params.metric);
    return detail::predict_on_gpu(
        traits_of(params.device.index),
        {.n = input.n(),
         .row_bytes = form.row_bytes * (swept == SweepForm::split ? kSplitProducts : 1),
         .bytes = form.packed != PackedType::f16,
         .codes = (!swept || swept == SweepForm::codes) && choices.parts == 1 &&
                  may_sweep_codes(form.packed, params.metric, input.d()),
         .from_sample = !swept && may_compare_from_nothing(input, params),
         .list_bytes = form.packed == PackedType::f16 ? bytes_in_lists(choices, input.n(), input.d()) : 0,
         .k = params.k,
         .list_size = std::max(choices.list_size, detail::list_size_of(params)),
         .samples = choices.samples,
         .parts = choices.parts});
}

void run_gnnd(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks, Resources& resources,
              std::int32_t* ids, float* distances, BuildStats& stats) {
    check_update(params.update);
    const OwnedStream stream(resources);
    const InPlace in_place{on_device(input.vectors[0].data) && input.adjoining(),
                           {on_device(input.graphs[0].ids), on_device(input.graphs[1].ids)},
                           on_device(ids) && ids != input.graphs[0].ids};
    BuildPlan plan = plan_gnnd(input, in_place, params, resources.free_device_memory(), stats.choices);
    const DeviceMemory memory(resources, plan.total, stream);
    const Drain drain(stream);
    BuildState state = make_state(input, params, stats.choices, plan, in_place.vectors, resources, memory.data(),
                                  stream, ids, distances);
    Stopwatch measuring(stream);
    std::optional<RecallMeter> meter;
    if (params.recall > 0) {
        const Stopwatch::Piece piece(measuring);
        meter.emplace(state, measuring);
        meter->predict_all_pairs([&, choices = stats.choices](SweepForm form, int k) {
            BuildParams wanted = params;
            wanted.k = k;
            return predict(input, wanted, choices, form).all_pairs;
        });
    }
    // Lists without what was set aside say little of the graph.
    RecallMeter* const in_between = meter && !detail::sets_aside(input, params) ? &*meter : nullptr;
    const bool may_give_up = !params.deterministic && may_compare_all_pairs(state);
    iterate_from_short_rows(state, callbacks, in_between, may_give_up, stats);
    stats.choices.codes = codes_in(state.form);
    stats.peak_work_bytes = std::int64_t(plan.work_bytes());
    if (meter)
        reach_recall(state, *meter, callbacks, stats);
    else
        finish(state, state.lists.length);
    if (input.exact) compare_all_pairs(state, nullptr, callbacks, stats);
    stats.recall_seconds += measuring.seconds();
    if (!in_place.result)
        copy_graph_out(ids, distances, state.ids, state.distances, state.n * params.k, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    stats.choices.capacity = plan.capacity;
    stats.choices.passes = plan.passes;
}

/// True where all pairs are compared without lists before, unless these turn out to be needed.
bool is_from_nothing(const detail::Input& input, const BuildParams& params) {
    return predict(input, params, choices_for_bounds(input, for_bounds(params))).from_sample;
}

/// With vectors and result on the host.
ExactPlan plan_all_pairs(const detail::Input& input, const BuildParams& params, std::size_t free) {
    const BuildParams quick = for_bounds(params);
    Choices choices = choices_for_bounds(input, quick);
    const BuildPlan plan = plan_gnnd(all_pairs_of(input), {}, quick, free, choices);
    ExactPlan exact{plan.vector_bytes(), plan.graph_bytes(), plan.total + plan.beside};
    if (is_from_nothing(input, params))
        exact.total = std::max(exact.total, plan_from_nothing(input, false, false, params, free).total);
    return exact;
}

PartsPlan plan_all_pairs_in_parts(const detail::Input& input, const BuildParams& params, std::size_t free) {
    return plan_parts(input, params, free,
                      [&](const detail::Input& part) { return plan_all_pairs(part, params, free).total; });
}

void run_in_parts(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                  Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats) {
    const Choices choices = stats.choices;
    const PartsPlan plan = plan_all_pairs_in_parts(input, params, resources.free_device_memory());
    compare_in_parts(input, plan, params, callbacks, resources, ids, distances, stats);
    stats.choices = choices;
    stats.choices.parts = plan.count;
}

void run_all_pairs(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                   Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats) {
    const Choices choices = stats.choices;
    try {
        if (is_from_nothing(input, params) &&
            compare_from_nothing(input, params, callbacks, resources, ids, distances, stats))
            return;
        const BuildParams quick = for_bounds(params);
        stats.choices = choices_for_bounds(input, quick);
        run_gnnd(all_pairs_of(input), quick, callbacks, resources, ids, distances, stats);
        stats.choices = choices;
    } catch (const OutOfDeviceMemory&) {
        stats.choices = choices;
        run_in_parts(input, params, callbacks, resources, ids, distances, stats);
    }
}

/// True where all pairs are to be compared before any iteration has said what iterations find.
bool all_pairs_cost_less(const detail::Input& input, const BuildParams& params, const Choices& choices,
                         std::size_t free) {
    const bool may_choose = params.recall > 0 && !params.deterministic && params.update == Update::automatic &&
                            input.n() > kMostOnHost && !detail::limits_work(params) && !input.refines() &&
                            !input.merges();
    if (!may_choose || !detail::all_pairs_cost_less(predict(input, params, choices), input.n(), params)) return false;
    try {
        plan_all_pairs(input, params, free);
        return true;
    } catch (const OutOfDeviceMemory&) {
        return false;  // in parts they take longer
    }
}

/// The choices of a build, once it is known whether it compares all pairs: then none are those of lists.
Choices decided(const detail::Input& input, const BuildParams& params, Choices choices, std::size_t free) {
    choices.exhaustive = choices.exhaustive || all_pairs_cost_less(input, params, choices, free);
    if (choices.exhaustive) choices.codes = Codes::none;
    return choices;
}

/// Searches, and compares all pairs of both sets as of one; where the memory does not hold that, of parts of each.
void insert_exactly(const detail::Input& input, const BuildParams& params, const Callbacks& callbacks,
                    Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats) {
    const BuildStats before = stats;
    try {
        insert(input, params, callbacks, resources, ids, distances, stats);
    } catch (const OutOfDeviceMemory&) {
        stats = before;
        run_in_parts(input, params, callbacks, resources, ids, distances, stats);
    }
}

}  // namespace

void build(const detail::Input& input, const BuildParams& params, const Choices& choices, const Callbacks& callbacks,
           Resources& resources, std::int32_t* ids, float* distances, BuildStats& stats) {
    stats.choices = decided(input, params, choices, resources.free_device_memory());
    const bool exhaustive = stats.choices.exhaustive;
    if (exhaustive && input.n() <= kMostOnHost) {
        run_exhaustively(input, params, callbacks, resources, ids, distances);
        stats.stop = StopReason::exact;
    } else if (input.inserts) {
        (exhaustive ? insert_exactly : insert)(input, params, callbacks, resources, ids, distances, stats);
    } else if (exhaustive) {
        run_all_pairs(input, params, callbacks, resources, ids, distances, stats);
    } else {
        run_gnnd(input, params, callbacks, resources, ids, distances, stats);
    }
}

MemoryPlan plan(const detail::Input& input, const BuildParams& params, const Choices& choices) {
    const UseDevice device(params.device.index);
    MemoryPlan result;
    result.free = HeapResources().free_device_memory();
    result.choices = decided(input, params, choices, result.free);
    const bool exhaustive = result.choices.exhaustive;
    result.why = detail::explain(result.choices, params, true, true);
    if (exhaustive && input.n() <= kMostOnHost) return result;
    check_update(params.update);
    const auto tell = [&](const ExactPlan& plan) {
        result.vectors = plan.vectors;
        result.graph = plan.graph;
        result.work = plan.total - plan.vectors - plan.graph;
    };
    if (!exhaustive) {
        const BuildPlan plan = plan_gnnd(input, {}, params, result.free, result.choices);
        result.choices.capacity = plan.capacity;
        result.choices.passes = plan.passes;
        tell({plan.vector_bytes(), plan.graph_bytes(), plan.total + plan.beside});
        result.why = detail::explain(result.choices, params, true, plan.all_pairs.bytes != 0);
    } else {
        try {
            tell(plan_all_pairs(input, params, result.free));
        } catch (const OutOfDeviceMemory&) {
            const PartsPlan plan = plan_all_pairs_in_parts(input, params, result.free);
            result.choices.parts = plan.count;
            tell(plan);
        }
    }
    Choices of_lists = result.choices;
    of_lists.codes = choices.codes;  // of what iterations would compare, where they are not what is chosen
    result.predicted = predict(input, params, of_lists);
    return result;
}

BuildStats run(const detail::Input& input, const BuildParams& params, const Choices& choices,
               const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances) {
    const auto start = std::chrono::steady_clock::now();
    const UseDevice device(params.device.index);
    check_places(input, ids, distances, params.device.index);
    BuildStats stats;
    stats.device = {Device::Kind::cuda, params.device.index};
    build(input, params, choices, keeping_device(callbacks, params.device.index), resources, ids, distances, stats);
    stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return stats;
}

}  // namespace gnnd::cuda
