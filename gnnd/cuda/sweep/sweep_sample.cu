// SPDX-License-Identifier: MIT
// The part of a sweep that makes lists exact from nothing, with bounds from a sample (detail/bound_sample.h).
#include <algorithm>
#include <cmath>
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/sweep/chosen_rows.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/sweep_layout.h"
#include "gnnd/detail/bound_sample.h"
#include "gnnd/detail/recall.h"

namespace gnnd::cuda {
namespace {

constexpr int kThreads = 256;

/// Sets of fewer are compared in less time than it takes to look whether float16 tells their neighbours.
constexpr std::int64_t kLeastToLook = 50'000;
/// Of the places for hits those that are expected to be taken in a step.
constexpr double kTaken = 0.6;

/// One object of every `stride` that follow one another. \param ids  count, written
__global__ void choose_columns_kernel(u32 n, u32 stride, u32 count, u32* ids) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) ids[i] = min(n - 1, i * stride + u32(mix(i) % stride));
}

u32 columns_of(const SweepSpace& space, int k) {
    return panels_of(u32(space.raw.n), detail::sample_stride(k));
}

}  // namespace

bool Sweep::may_find_exact(const SweepSpace& space, int k) {
    constexpr u32 kSparse = 2;  // the nearest should be in classes of their own
    const u32 groups = std::min(kMostGroups, panels_of(columns_of(space, k), kPanelRows));
    return first_form(space) != SweepForm::floats &&
           kSparse * detail::sample_rank(k, detail::sample_stride(k)) <= groups * kMaxima;
}

std::size_t Sweep::bytes_from_sample(const SweepSpace& space, int k) {
    return bytes_of_all(space, k) + SampleLayout(space, columns_of(space, k)).total;
}

void Sweep::bound_by_sample(const SweepRows& rows) {
    const u32 columns = columns_of(space_, k_), stride = detail::sample_stride(k_);
    const SampleLayout layout(space_, columns);
    const auto at = [&](const Part& part) { return sample_.data() + part.offset; };
    auto* ids = reinterpret_cast<u32*>(at(layout.ids));
    auto* packed = reinterpret_cast<std::uint8_t*>(at(layout.packed));
    auto* thresholds = reinterpret_cast<Threshold*>(at(layout.thresholds));
    choose_columns_kernel<<<blocks_for(columns, kThreads), kThreads, 0, stream_>>>(u32(space_.raw.n), stride, columns,
                                                                                   ids);
    GNND_LAUNCHED("choose_columns_kernel");
    gather_rows(space_.rows, ids, columns, packed, stream_);
    make_offsets(ids, columns, thresholds);
    // Nobody needs the places for hits yet.
    static_assert(kMostGroups * kMaxima * sizeof(u32) <= hits_of_all(1) * sizeof(u64));
    auto* maxima = reinterpret_cast<u32*>(rows.hits.entries);
    const SweepArgs args{.of_rows = nullptr,
                         .of_columns = thresholds,
                         .row_ids = nullptr,
                         .rows = rows.count,
                         .columns = columns,
                         .border = 0,
                         .begin = 0,
                         .end = panels_of(columns, kPanelRows),
                         .hits = {},
                         .high_tiles = high_tiles(),
                         .maxima = maxima};
    const u32 groups =
        sweep_sample(space_.packed, args, rows.packed, {packed, columns, space_.rows.row_bytes}, kMostGroups, stream_);
    make_ceilings(form_, space_,
                  {.count = rows.count,
                   .maxima = maxima,
                   .groups = groups,
                   .rank = detail::sample_rank(k_, stride),
                   .out = rows.ceilings},
                  stream_);
}

bool Sweep::are_bounds_good(float* ceilings, int hits) {
    const std::vector<std::int32_t> objects = detail::sample_in_any_order(space_.raw.n, kTrialObjects, 1);
    some_.ceilings = ceilings;
    const u32 bad = compare_chosen(objects.data(), u32(objects.size()), nullptr, 0, 0, {}, hits);
    some_.ceilings = nullptr;
    return bad <= objects.size() / kCrowded;
}

bool Sweep::find_exact(const Lists& lists, const Callbacks& callbacks) {
    use_form(form_);
    const std::int64_t n = space_.raw.n;
    // Before the memory of all rows, which may leave none: for the few that are compared apart.
    make_room(u32(std::min<std::int64_t>(n, kProbes)));
    SweepRows rows = allocate_rows(u32(n), hits_of_all(k_), &lists);
    const SampleLayout layout(space_, columns_of(space_, k_));
    sample_ = DeviceMemory(resources_, layout.total, stream_);
    rows.ceilings = reinterpret_cast<float*>(sample_.data() + layout.ceilings.offset);
    const u32 stride = detail::sample_stride(k_);
    const double expected = double(detail::sample_rank(k_, stride)) * stride;
    const u32 steps = std::max(u32(std::ceil(expected / (kTaken * rows.hits.capacity))), least_steps());
    const int places = std::min(int(steps) * rows.hits.capacity, hits_of_some(k_));
    bound_by_sample(rows);
    const auto are_good = [&] { return form_ != SweepForm::halves || are_bounds_good(rows.ceilings, places); };
    const bool looks_first = n >= kLeastToLook;
    if (looks_first && !are_good()) {
        if (finer_packed_form() == form_) return false;
        use_form(finer_packed_form());
        rows.packed = space_.rows;
        bound_by_sample(rows);
        if (!are_bounds_good(rows.ceilings, places)) return false;
    }
    clear(lists, rows.hits, n, stream_);
    const auto compare = [&] { return compare_all(rows, even_steps(rows, steps), callbacks); };
    const u32 many = u32(n / kFewOverflow);
    u32 overflowed = compare();
    // Of sorted objects all hits may come in one step. Half of them have told better bounds by then. As split rows
    // lists take less.
    if (overflowed > many && (looks_first ? form_ != SweepForm::split : are_good())) overflowed = compare();
    if (overflowed > many) return false;
    compare_apart(rows, overflowed, callbacks);
    return true;
}

}  // namespace gnnd::cuda
