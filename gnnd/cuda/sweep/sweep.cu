// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/runtime/wait.h"
#include "gnnd/cuda/sweep/chosen_rows.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/sweep_layout.h"
#include "gnnd/detail/recall.h"

namespace gnnd::cuda {
namespace {

/// The first step of chosen rows that have lists compares so many times less than all, to see better bounds.
constexpr u32 kFirstStep = 16;

/// A step of make_exact() should take some tenths of a second: bytes of rows that are compared in one.
constexpr double kBytesOfStep = 1e14;
/// None of its steps is a larger part of it.
constexpr u32 kSteps = 4;

/// All are compared again at most so often.
constexpr int kMostRepeats = 2;

}  // namespace

SweepForm first_form(const SweepSpace& space) {
    if (!is_product(space.metric)) return SweepForm::floats;
    if (space.packed == PackedType::f16) return SweepForm::halves;
    return space.rows.row_bytes <= kMaxSweptBytes ? SweepForm::integers : SweepForm::floats;
}

std::size_t Sweep::bytes_of_some(const SweepSpace& space, u32 count, int k) {
    return SharedLayout(space).total + RowsLayout(space, count, k, hits_of_some(k), false).total;
}

std::size_t Sweep::bytes_of_all(const SweepSpace& space, int k) {
    return bytes_of_some(space, u32(std::min<std::int64_t>(space.raw.n, kProbes)), k) +
           RowsLayout(space, u32(space.raw.n), k, hits_of_all(k), true).total;
}

Sweep::Sweep(const SweepSpace& space, int k, Resources& resources, cudaStream_t stream)
    : space_(space), k_(k), resources_(resources), stream_(stream), form_(first_form(space)), drain_(stream) {
    const SharedLayout layout(space);
    shared_ = DeviceMemory(resources, layout.total, stream);
    columns_ = reinterpret_cast<Threshold*>(shared_.data() + layout.thresholds.offset);
    std::byte* small = shared_.data() + layout.small.offset;
    GNND_CUDA(cudaMemsetAsync(small, 0, layout.small.bytes, stream));
    norms_ = reinterpret_cast<RowNorms*>(small);
    overflows_ = reinterpret_cast<u32*>(small + 64);
    stop_ = reinterpret_cast<StopFlag*>(small + 128);
    counters_ = reinterpret_cast<Counters*>(small + 256);
    if (is_normalized(space.metric)) {
        factors_ = reinterpret_cast<float*>(shared_.data() + layout.factors.offset);
        make_factors(space, factors_, stream);
    }
}

SweepForm Sweep::finer_form() const {
    if (form_ == SweepForm::projections && may_sweep_codes(space_.packed, space_.metric, space_.raw.d))
        return SweepForm::codes;
    if (is_codes(form_)) return SweepForm::halves;
    return form_ == SweepForm::halves && may_split() ? SweepForm::split : SweepForm::floats;
}

SweepForm Sweep::finer_packed_form() const {
    const SweepForm finer = finer_form();
    return finer == SweepForm::floats ? form_ : finer;
}

bool Sweep::may_split() const {
    return SplitLayout(space_.raw).total <= space_.spare;
}

std::size_t Sweep::bytes_of_split() const {
    return split_.data() != nullptr ? SplitLayout(space_.raw).total : 0;
}

void Sweep::split() {
    const SplitLayout layout(space_.raw);
    split_ = DeviceMemory(resources_, layout.total, stream_);
    auto* rows = reinterpret_cast<std::uint8_t*>(split_.data() + layout.rows.offset);
    auto* norms = reinterpret_cast<u32*>(split_.data() + layout.norms.offset);
    space_.rows = {rows, space_.raw.n, 2 * high_tiles_of(space_.raw.d) * kTileBytes};
    space_.norms = norms;
    split_space(space_.raw, space_.metric, space_.info, rows, space_.rows.row_bytes, norms,
                reinterpret_cast<float*>(split_.data() + layout.mean.offset), stream_);
}

void Sweep::pack_rows() {
    if (!space_.pack) return;
    const SweptRows rows = space_.pack(form_);
    if (split_.data() == nullptr) space_.rows = rows;
}

void Sweep::prepare() {
    in_use_ ? pack_rows() : use_form(form_);
}

void Sweep::use_form(SweepForm form) {
    form_ = form;
    in_use_ = true;
    crowded_ = false;
    timed_.emplace(stream_);
    pack_rows();
    if (form == SweepForm::split && split_.data() == nullptr) split();
    if (form != SweepForm::integers && form != SweepForm::floats) sum_up_norms(form, space_, norms_, stream_);
    make_offsets(nullptr, u32(space_.columns), columns_);
}

void Sweep::make_offsets(const u32* objects, u32 count, Threshold* offsets) {
    make_thresholds(form_, space_,
                    {.objects = objects,
                     .count = count,
                     .padded = padded(count),
                     .lists = {},
                     .wanted = {},
                     .ceilings = nullptr,
                     .norms = norms_,
                     .out = offsets},
                    stream_);
}

int Sweep::high_tiles() const {
    return form_ == SweepForm::split ? high_tiles_of(space_.raw.d) : 0;
}

SweepRows Sweep::allocate_rows(u32 count, int capacity, const Lists* lists) {
    const RowsLayout layout(space_, count, k_, capacity, lists != nullptr);
    SweepRows rows;
    rows.count = count;
    rows.memory = DeviceMemory(resources_, layout.total, stream_);
    const auto at = [&](const Part& part) { return rows.memory.data() + part.offset; };
    const auto words = [&](const Part& part) { return reinterpret_cast<u32*>(at(part)); };
    if (lists != nullptr) {
        rows.lists = *lists;
        rows.packed = space_.rows;
    } else {
        const auto lists_at = [&](const ListsLayout& parts) -> Lists {
            return {.ids = words(parts.ids),
                    .distances = reinterpret_cast<float*>(at(parts.distances)),
                    .bounds = reinterpret_cast<float*>(at(parts.bounds)),
                    .length = k_,
                    .segments = 1};
        };
        rows.packed = {reinterpret_cast<std::uint8_t*>(at(layout.packed)), count, space_.rows.row_bytes};
        rows.objects = words(layout.objects);
        rows.lists = lists_at(layout.lists);
        again_.objects = words(layout.again);
        again_.lists = lists_at(layout.lists_again);
        places_ = words(layout.places);
    }
    rows.hits = {reinterpret_cast<u64*>(at(layout.entries)), words(layout.counts), capacity};
    rows.thresholds = reinterpret_cast<Threshold*>(at(layout.thresholds));
    rows.overflowed = words(layout.overflowed);
    rows.is_overflowed = words(layout.is_overflowed);
    GNND_CUDA(cudaMemsetAsync(rows.hits.counts, 0, layout.counts.bytes, stream_));
    return rows;
}

u32 Sweep::width_of(const SweepRows& rows) const {
    const u32 panels = panels_of(u32(space_.columns), panel_rows());
    return rows.objects != nullptr ? panels : panels / 2 + 1;
}

void Sweep::compare(const SweepRows& rows, u32 begin, u32 end) {
    make_thresholds(form_, space_,
                    {.objects = rows.objects,
                     .count = rows.count,
                     .padded = padded(rows.count),
                     .lists = rows.lists,
                     .wanted = rows.wanted,
                     .ceilings = rows.ceilings,
                     .norms = norms_,
                     .out = rows.thresholds},
                    stream_);
    const SweepArgs args{.of_rows = rows.thresholds,
                         .of_columns = rows.objects != nullptr ? columns_ : rows.thresholds,
                         .row_ids = rows.objects,
                         .rows = rows.count,
                         .columns = u32(space_.columns),
                         .border = space_.border,
                         .begin = begin,
                         .end = end,
                         .hits = rows.hits,
                         .high_tiles = high_tiles(),
                         .maxima = nullptr};
    if (form_ == SweepForm::floats)
        sweep_floats(space_.metric, args, space_.raw, factors_, stream_);
    else
        sweep_packed(is_codes(form_) ? PackedType::i8 : space_.packed,
                     rows.objects != nullptr ? Compared::chosen : Compared::pairs, args, rows.packed, space_.rows,
                     stream_);
}

ScoreArgs Sweep::scoring(const SweepRows& rows) const {
    return {.objects = rows.objects,
            .count = rows.count,
            .lists = rows.lists,
            .hits = rows.hits,
            .overflowed = rows.overflowed,
            .overflows = overflows_,
            .is_overflowed = rows.is_overflowed};
}

void Sweep::take_hits(const SweepRows& rows) {
    score_hits(space_, scoring(rows), stream_);
    apply_candidates(rows.lists, rows.hits, rows.count, stop_, counters_, stream_);
}

std::vector<u32> Sweep::even_steps(const SweepRows& rows, u32 steps) const {
    const u32 width = width_of(rows);
    steps = std::min(steps, width);
    std::vector<u32> ends;
    for (u32 step = 1; step <= steps; ++step) ends.push_back(u32(u64(width) * step / steps));
    return ends;
}

/// All columns of a step are hits while lists are not full, or full of what is far. After that, of columns in no order,
/// about k times as many as there are beside those seen before: half of the places should do.
std::vector<u32> Sweep::growing_steps(const SweepRows& rows, u32 least, u32 first) const {
    const u32 width = width_of(rows), places = u32(rows.hits.capacity), growth = std::max(1u, places / 2 / u32(k_));
    const u32 most = std::max(1u, width / least);
    std::vector<u32> ends;
    for (u32 end = std::max({1u, first, places / panel_rows()}); end < width;
         end += u32(std::min<u64>(u64(end) * growth, most)))
        ends.push_back(end);
    ends.push_back(width);
    return ends;
}

std::vector<u32> Sweep::two_steps(const SweepRows& rows) const {
    const u32 width = width_of(rows), first = width / kFirstStep;
    if (first == 0) return {width};
    return {first, width};
}

u32 Sweep::least_steps() const {
    const double n = double(space_.raw.n), bytes = n * n / 2 * double(space_.rows.row_bytes);
    return std::max(1u, u32(bytes / kBytesOfStep));
}

u32 Sweep::compare_all(const SweepRows& rows, const std::vector<u32>& ends, const Callbacks& callbacks) {
    GNND_CUDA(cudaMemsetAsync(overflows_, 0, sizeof(u32), stream_));
    GNND_CUDA(cudaMemsetAsync(rows.is_overflowed, 0, std::size_t(rows.count) * sizeof(u32), stream_));
    u32 begin = 0;
    for (const u32 end : ends) {
        std::optional<Stopwatch::Piece> all, comparing;
        if (end == ends.back() && timed_->rows == 0) {
            timed_->rows = rows.count;
            timed_->part = double(end - begin) / end;
            all.emplace(timed_->all);
            comparing.emplace(timed_->comparing);
        }
        compare(rows, begin, end);
        comparing.reset();
        take_hits(rows);
        all.reset();
        begin = end;
        await(stream_, callbacks);
    }
    if (rows.ceilings != nullptr) find_short_lists(scoring(rows), rows.ceilings, stream_);
    GNND_CUDA(cudaMemcpyAsync(&overflows_here_[0], overflows_, sizeof(u32), cudaMemcpyDeviceToHost, stream_));
    GNND_CUDA(cudaStreamSynchronize(stream_));
    return overflows_here_[0];
}

SweepPace Sweep::pace() const {
    if (!timed_ || timed_->rows == 0) return {};
    const double comparing = timed_->comparing.seconds() / timed_->part, all = timed_->all.seconds() / timed_->part;
    return {timed_->rows, comparing, all - comparing};
}

void Sweep::make_exact(const Lists& lists, std::optional<SweepForm> form, const Callbacks& callbacks) {
    const std::int64_t n = space_.raw.n;
    const bool tries_codes = is_codes(form_) && !in_use_;
    if (tries_codes && form && (is_codes(*form) || form == SweepForm::halves)) form.reset();  // few objects tell less
    if (form == SweepForm::split && !may_split()) form = SweepForm::floats;
    if (form)
        use_form(*form);
    else
        prepare();
    if (!form && (is_codes(form_) || form_ == SweepForm::halves)) {
        const std::vector<std::int32_t> probes = detail::sample_in_any_order(n, kProbes, 1);
        // As many may be left: behind the memory of all rows there is room for no others.
        make_room(u32(probes.size()));
        while (is_codes(form_) && !are_worthwhile(probes, lists.ids, lists.length, lists.length))
            use_form(finer_form());
        if (form_ == SweepForm::halves)
            nearest_of(probes.data(), u32(probes.size()), lists.ids, lists.length, lists.length);
        if (form_of_all() != form_) use_form(form_of_all());
    }
    SweepRows rows = allocate_rows(u32(n), hits_of_all(k_), &lists);
    u32 steps = std::max(kSteps, least_steps());
    // Codes were found to have few hits.
    const u32 first = is_codes(form_) ? width_of(rows) / kFirstStep : 0;
    u32 overflowed = compare_all(rows, growing_steps(rows, steps, first), callbacks);
    // Their bounds are better now, but for those of objects that have very many others at about the same distance,
    // which finer forms tell apart.
    for (int again = 0; again < kMostRepeats && overflowed > u32(n / kFewOverflow); ++again) {
        if (const SweepForm finer = finer_packed_form(); finer != form_) {
            use_form(finer);
            rows.packed = space_.rows;
        }
        overflowed = compare_all(rows, even_steps(rows, steps *= 4), callbacks);
    }
    compare_apart(rows, overflowed, callbacks);
}

void Sweep::compare_apart(const SweepRows& rows, u32 overflowed, const Callbacks& callbacks) {
    if (overflowed == 0) return;
    const Lists& lists = rows.lists;
    std::vector<std::int32_t> left(overflowed);
    GNND_CUDA(
        cudaMemcpyAsync(left.data(), rows.overflowed, left.size() * sizeof(u32), cudaMemcpyDeviceToHost, stream_));
    GNND_CUDA(cudaStreamSynchronize(stream_));
    std::sort(left.begin(), left.end());
    for (std::size_t first = 0; first < left.size(); first += kProbes) {
        const u32 count = u32(std::min<std::size_t>(kProbes, left.size() - first));
        const Lists exact = nearest_of(left.data() + first, count, lists.ids, lists.length, lists.length);
        put_back(exact, some_.objects, count, lists, stream_);
        await(stream_, callbacks);
    }
}

}  // namespace gnnd::cuda
