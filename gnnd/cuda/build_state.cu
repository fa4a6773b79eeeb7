// SPDX-License-Identifier: MIT
// From the plan of a build to its arrays.
#include "gnnd/cuda/build_state.h"
#include "gnnd/cuda/memory/fetch.h"
#include "gnnd/cuda/runtime/errors.h"
#include "gnnd/cuda/space/projection.h"

namespace gnnd::cuda {

BuildState make_state(const detail::Input& input, const BuildParams& params, const Choices& choices, BuildPlan& plan,
                      bool vectors_in_place, Resources& resources, std::byte* memory, cudaStream_t stream,
                      std::int32_t* ids, float* distances) {
    const auto at = [&]<class T>(const Part& part, T*) { return reinterpret_cast<T*>(memory + part.offset); };
    const auto words = [&](const Part& part) { return at(part, static_cast<u32*>(nullptr)); };
    const auto floats = [&](const Part& part) { return at(part, static_cast<float*>(nullptr)); };

    std::byte* small = memory + plan.small.offset;
    auto* stop = reinterpret_cast<StopFlag*>(small);
    auto* info = reinterpret_cast<SpaceInfo*>(small + 256);
    auto* records = reinterpret_cast<Record*>(small + 512);
    auto* counters = reinterpret_cast<Counters*>(small + 4096);
    static_assert(512 + (kAhead + 1) * sizeof(Record) <= 4096 && 4096 + kSpread * sizeof(Counters) <= kSmallBytes);

    const RawVectors raw = upload(input, vectors_in_place, memory + plan.vectors.offset, resources, stream);
    GNND_CUDA(cudaMemsetAsync(small, 0, plan.small.bytes, stream));
    find_integers(raw, params.metric, plan, &info->largest, stream);
    std::uint8_t* rows = plan.vectors_in_place ? nullptr : at(plan.rows, static_cast<std::uint8_t*>(nullptr));
    u32* bias = words(plan.bias);
    float* mean = floats(plan.packing);
    prepare_space(raw, params.metric, plan, rows, bias, mean, info, stream);

    if (plan.graph_ids.bytes != 0) {
        ids = at(plan.graph_ids, static_cast<std::int32_t*>(nullptr));
        distances = floats(plan.graph_distances);
    }
    const bool lists_in_result = plan.length == params.k;
    return {.input = input,
            .params = params,
            .choices = choices,
            .plan = plan,
            .resources = resources,
            .stream = stream,
            .form = plan,
            .projection_keeps = 0,
            .has_projection = false,
            .coarse = true,
            .engine = &engine_for(plan.packed, params.metric),
            .memory = memory,
            .n = input.n(),
            .raw = raw,
            .points = points_of(raw, params.metric, plan, rows, bias, input.pairs()),
            .assigning = points_of(raw, Metric::L2, plan, rows, bias),
            .lists = {.ids = lists_in_result ? reinterpret_cast<u32*>(ids) : words(plan.list_ids),
                      .distances = lists_in_result ? distances : floats(plan.list_distances),
                      .bounds = floats(plan.bounds),
                      .length = plan.length,
                      .segments = 1,
                      .bound_stride = 2},
            .samples = {.ids = words(plan.sample_ids),
                        .own = words(plan.own),
                        .reverse = words(plan.reverse),
                        .offsets = params.deterministic ? at(plan.offsets, static_cast<u64*>(nullptr)) : nullptr,
                        .edges = params.deterministic ? words(plan.candidates) : nullptr,
                        .p = plan.samples},
            .variant = {.update = params.update,
                        .filter = {.words = plan.filter.bytes != 0 ? words(plan.filter) : nullptr, .salt = 0},
                        .candidates = {.entries = at(plan.candidates, static_cast<u64*>(nullptr)),
                                       .counts = words(plan.counts),
                                       .capacity = plan.capacity},
                        .locks = plan.locks.bytes != 0 ? words(plan.locks) : nullptr},
            .keys = {words(plan.keys[0]), words(plan.keys[1])},
            .order = {words(plan.order[0]), words(plan.order[1])},
            .visit = nullptr,
            .sort_work = memory + plan.sort.offset,
            .stop = stop,
            .counters = counters,
            .records = records,
            .info = info,
            .code_errors =
                plan.code_errors.bytes != 0 && plan.packed == PackedType::f16 ? floats(plan.code_errors) : nullptr,
            .restart = nullptr,
            .restart_width = 0,
            .ids = ids,
            .distances = distances};
}

namespace {

std::byte* projection_of(const BuildState& state) {
    return state.memory + state.plan.projection.offset;
}

/// Where no candidates wait.
std::byte* projecting_in(const BuildState& state) {
    return state.memory + state.plan.candidates.offset;
}

}  // namespace

void make_projection(BuildState& state) {
    use_float16(state);
    if (state.has_projection) return;
    state.projection_keeps = find_projection(state.points, state.seed_of(0x40000u), projection_of(state),
                                             projecting_in(state), state.stream);
    state.has_projection = true;
}

bool projection_keeps_most(const BuildState& state) {
    return state.projection_keeps >= kKeepsMost;
}

void use_form(BuildState& state, const VectorForm& form) {
    if (state.form.codes == form.codes && state.form.components == form.components) return;
    auto* rows = reinterpret_cast<std::uint8_t*>(state.memory + state.plan.rows.offset);
    auto* bias = reinterpret_cast<u32*>(state.memory + state.plan.bias.offset);
    if (form.components != 0) {
        make_projection(state);
        std::byte *projection = projection_of(state), *work = projecting_in(state);
        project(state.points, is_normalized(state.params.metric), projection, rows, bias, state.code_errors, state.info,
                work, state.stream);
    } else {
        auto* work = reinterpret_cast<float*>(state.memory + state.plan.packing.offset);
        pack_again(state.raw, state.params.metric, form, rows, bias, state.code_errors, work, state.info, state.stream);
    }
    state.form = form;
    state.engine = &engine_for(form.packed, state.params.metric);
    state.points = points_of(state.raw, state.params.metric, form, rows, bias, state.input.pairs());
    state.assigning = points_of(state.raw, Metric::L2, form, rows, bias);
}

SpaceInfo read_info(const BuildState& state) {
    return fetch<SpaceInfo>(state.info, state.stream);
}

void use_codes(BuildState& state) {
    use_form(state, code_form(state.raw.d));
}

void use_projection(BuildState& state) {
    use_form(state, projected_form());
}

void use_float16(BuildState& state) {
    use_form(state, state.plan);
}

}  // namespace gnnd::cuda
