// SPDX-License-Identifier: MIT
#include "gnnd/cuda/memory/plan.h"

#include <algorithm>

#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/space/codes.h"
#include "gnnd/cuda/space/projection.h"

namespace gnnd::cuda {
namespace {

constexpr std::int64_t kFilterBytes = 64;  // kFilterWords words a list

/// The bits that a key of integers can be shifted to the left: its value lies between -largest and 3 * largest squared
/// norms.
int shift_for(PackedType packed, std::int64_t d) {
    std::int64_t bound = 0;
    switch (packed) {
        case PackedType::u8:
            bound = d * 255 * 255;
            break;
        case PackedType::i8:
            bound = 3 * d * 128 * 128;
            break;
        case PackedType::f16:
            return 0;  // its keys are floats
    }
    int shift = 0;
    while (shift < 8 && bound << (shift + 1) < (std::int64_t(1) << 31) - 256) ++shift;
    return shift;
}

}  // namespace

VectorForm form_of(const VectorView& vectors, bool on_device, Metric metric) {
    const std::int64_t d = vectors.d;
    if (!is_byte(vectors.dtype) || !is_unnormalized_product(metric) || d > kMaxIntegerDim) {
        VectorForm form;
        form.row_bytes = int(round_up(d * 2, kStep));
        return form;
    }
    const PackedType packed = visit(vectors.dtype, []<class T>(T) {
        if constexpr (!std::is_integral_v<T>)
            return PackedType::f16;
        else
            return std::is_signed_v<T> ? PackedType::i8 : PackedType::u8;
    });
    VectorForm form = integer_form(packed, d);
    const bool aligned = !on_device || reinterpret_cast<std::uintptr_t>(vectors.data) % 16 == 0;
    const std::int64_t stride = on_device ? vectors.row_bytes() : d;
    form.vectors_in_place = stride == form.row_bytes && aligned && d == form.row_bytes;
    return form;
}

VectorForm integer_form(PackedType packed, std::int64_t d) {
    VectorForm form;
    form.packed = packed;
    form.row_bytes = int(round_up(d, kStep));
    form.exact_distances = form.row_bytes <= kTileBytes;
    form.shift = shift_for(packed, d);
    return form;
}

VectorForm code_form(std::int64_t d) {
    VectorForm form = integer_form(PackedType::i8, d);
    form.exact_distances = false;
    form.codes = true;
    return form;
}

VectorForm projected_form() {
    VectorForm form = code_form(kComponents);
    form.components = kComponents;
    return form;
}

bool may_sweep_codes(PackedType packed, Metric metric, std::int64_t d) {
    return packed == PackedType::f16 && is_product(metric) && d > kTileBytes / 2 && d <= kMaxSweptBytes;
}

BuildPlan make_build_plan(const detail::Input& input, const InPlace& in_place, const BuildParams& params,
                          const Choices& choices, std::size_t sort_bytes, std::size_t beside, std::size_t all_pairs,
                          std::size_t free) {
    const std::int64_t n = input.n(), d = input.d(), k = params.k;
    BuildPlan plan;
    plan.VectorForm::operator=(form_of(input.vectors[0], in_place.vectors, params.metric));
    plan.samples = choices.samples;
    plan.length = choices.list_size;
    plan.beside = beside;

    const bool buffered = params.update == Update::automatic;
    if (params.update == Update::selective && params.locks == Locks::segment)
        plan.segments = (plan.length + kSegmentLength - 1) / kSegmentLength;

    const auto lay_out = [&](int capacity, std::size_t for_all_pairs) {
        plan.capacity = capacity;
        Layout layout;
        if (!in_place.vectors) plan.vectors = layout.take(n * d * std::int64_t(size_of(input.dtype())));
        const bool projects = may_project(choices.codes, n, d);
        if (!plan.vectors_in_place) plan.rows = layout.take(n * std::max(plan.row_bytes, projects ? kComponents : 0));
        if (!in_place.result) {
            plan.graph_ids = layout.take(n * k * 4);
            plan.graph_distances = layout.take(n * k * 4);
        }
        plan.bias = layout.take(n * 4);
        if (projects || may_sweep_codes(plan.packed, params.metric, d)) plan.code_errors = layout.take(n * 4);
        if (plan.packed == PackedType::f16) plan.packing = layout.take(d * 8 + kCodeErrorBytes);
        plan.bounds = layout.take(n * 8);
        plan.small = layout.take(kSmallBytes);
        Layout finished = layout;
        if (plan.length != k) {
            plan.list_ids = layout.take(n * plan.length * 4);
            plan.list_distances = layout.take(n * plan.length * 4);
        }
        plan.visit = layout.take(n * 4);
        plan.own = layout.take(n * 4);
        plan.reverse = layout.take(n * 8);
        plan.counts = layout.take(n * 4);
        if (buffered) plan.filter = layout.take(n * kFilterBytes);
        if (!buffered || params.deterministic) plan.locks = layout.take(n * plan.segments * 4);
        if (params.deterministic) plan.offsets = layout.take(n * 16 + 8);
        // Holds in turn: what projections are made in, candidates, and the edges of reverse samples.
        const std::int64_t edges = params.deterministic ? n * 2 * plan.samples * 4 : 0;
        std::int64_t projecting = 0;
        if (projects) {
            plan.projection = layout.take(projection_bytes(round_up(d * 2, kStep)));
            projecting = projection_work_bytes(n, round_up(d * 2, kStep));
        }
        Layout growing = layout;
        plan.candidates = layout.take(std::max({n * capacity * 8, edges, projecting}));
        Layout starting = layout, ending = layout;
        plan.sample_ids = layout.take(n * 16 * plan.samples);
        const auto take_order = [&](Layout& from) {
            for (Part& part : plan.keys) part = from.take(n * 4);
            for (Part& part : plan.order) part = from.take(n * 4);
            plan.sort = from.take(std::int64_t(sort_bytes));
        };
        Layout ordering;
        take_order(ordering);
        const std::int64_t tree_bytes =
            std::int64_t(layout.end_ - plan.candidates.offset) - std::int64_t(ordering.end_);
        plan.tree_capacity = std::max(capacity, int(std::min<std::int64_t>(tree_bytes / (n * 8), kMostToFill)));
        growing.take(std::max(std::int64_t(plan.candidates.bytes), n * plan.tree_capacity * 8));
        take_order(growing);
        for (int set = 0; set < 2; ++set) {
            const KnnGraphView& graph = input.graphs[set];
            if (in_place.graphs[set]) continue;
            const std::int64_t kept = detail::kept_columns(graph, params);
            plan.given[set] = starting.take(graph.n * (input.merges() ? kept * 8 : graph.k * 4));
            if (input.merges()) plan.set_aside[set] = ending.take(graph.n * (graph.k - kept) * 8);
        }
        plan.all_pairs = finished.take(std::int64_t(for_all_pairs));
        plan.total = std::max({layout.end_, starting.end_, growing.end_, ending.end_, finished.end_});
    };
    const int wanted = choices.capacity, least = 4;
    const MemoryLimits limits{std::size_t(params.device_memory), free};
    const auto fits = [&] {
        return params.deterministic ? limits.allow(plan.total + beside) : limits.hold(plan.total + beside);
    };
    lay_out_to_fit(
        wanted, least, [&](int capacity) { lay_out(capacity, input.exact ? all_pairs : 0); }, fits,
        [](int capacity) { return capacity - 1; });
    if (!input.exact && all_pairs != 0) {
        const BuildPlan without = plan;
        lay_out(plan.capacity, all_pairs);
        if (!fits()) plan = without;
    }
    limits.check("the build", plan.total + beside);
    plan.passes = (wanted + plan.capacity - 1) / plan.capacity;
    return plan;
}

LinkPlan make_link_plan(const VectorView& vectors, bool vectors_on_device, std::int64_t k, bool graph_on_device,
                        Metric metric, int degree, bool links_on_device, std::int64_t some, std::size_t free) {
    const std::int64_t n = vectors.n, d = vectors.d, pruned = some > 0 ? some : n;
    LinkPlan plan;
    plan.VectorForm::operator=(form_of(vectors, vectors_on_device, metric));
    Layout layout;
    if (!vectors_on_device) plan.vectors = layout.take(n * d * std::int64_t(size_of(vectors.dtype)));
    if (!plan.vectors_in_place) plan.rows = layout.take(n * plan.row_bytes);
    if (!graph_on_device) plan.graph = layout.take(n * k * 4);
    if (!links_on_device) plan.links = layout.take(pruned * degree * 4);
    plan.bias = layout.take(n * 4);
    plan.sizes = layout.take(pruned * 4);
    if (some > 0) {
        plan.objects = layout.take(some * 4);
    } else {
        plan.counts = layout.take(n * 4);
        plan.offsets = layout.take(n * 8 + 8);
    }
    plan.info = layout.take(kSmallBytes);
    plan.edges = layout.take(std::max(some > 0 ? 0 : n * std::min<std::int64_t>(degree, k) * 8, d * 8));
    plan.total = layout.end_;
    MemoryLimits{0, free}.check(some > 0 ? "prune_rows" : "search_links", plan.total);
    return plan;
}

}  // namespace gnnd::cuda
