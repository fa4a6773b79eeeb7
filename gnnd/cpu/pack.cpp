// SPDX-License-Identifier: MIT
#include "gnnd/cpu/pack.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "gnnd/detail/fits.h"

namespace gnnd::cpu {
namespace {

constexpr std::int64_t kRowsAtOnce = 256;
/// One that is inserted among so many meets enough of their rows for a look at all of them (NOTEBOOK: of 90,000 x 128,
/// 100 take the same time either way, 400 three quarters of it).
constexpr std::int64_t kInsertedAmong = 500;
constexpr std::int64_t kExact = std::int64_t(1) << 24;  // floats are all integers up to here

/// What components were seen to be.
struct Range {
    int least = 0, most = 0;
    bool whole = true;  ///< integers that a byte may hold, with or without a sign

    void widen(const float* row, std::int64_t d) {
        int fractions = 0;
        for (std::int64_t c = 0; c < d; ++c) {
            const float value = row[c] >= -128 && row[c] <= 255 ? row[c] : 0.5F;  // NaN is neither
            const int here = int(value);
            fractions |= int(float(here) != value);
            least = std::min(least, here);
            most = std::max(most, here);
        }
        whole = whole && fractions == 0;
    }
    bool fits(std::int64_t d) const {
        const std::int64_t width = most - least;  // zero lies between
        return whole && (least >= 0 || most <= 127) && d * width * width <= kExact;
    }
};

/// Calls take(thread, number among all rows, values as floats) for the rows of all sets, while go_on() is true.
template <class GoOn, class Take>
void for_rows(std::span<const VectorView> sets, const Team& team, const GoOn& go_on, const Take& take) {
    const std::int64_t d = sets[0].d;
    std::vector<std::vector<float>> rows(team.threads, std::vector<float>(d));
    std::int64_t before = 0;
    for (const VectorView& set : sets) {
        team.for_chunks(set.n, kRowsAtOnce, [&](int thread, std::int64_t begin, std::int64_t end) {
            float* row = rows[thread].data();
            for (std::int64_t i = begin; i < end && go_on(); ++i) {
                copy_as_f32(set, i, 1, row);
                take(thread, before + i, row);
            }
        });
        before += set.n;
    }
}

std::optional<DType> dtype_for(std::span<const VectorView> sets, Metric metric, const Team& team) {
    const VectorView& first = sets[0];
    if (first.n == 0 || !may_pack(metric, first.dtype, first.d)) return std::nullopt;
    struct alignas(64) OfThread : Range {};
    std::vector<OfThread> seen(team.threads);
    std::atomic<bool> fit{true};
    for_rows(
        sets, team, [&] { return fit.load(std::memory_order_relaxed); },
        [&](int thread, std::int64_t, const float* row) {
            seen[thread].widen(row, first.d);
            if (!seen[thread].fits(first.d)) fit.store(false, std::memory_order_relaxed);
        });
    Range all;
    for (const OfThread& one : seen) {
        all.least = std::min(all.least, one.least);
        all.most = std::max(all.most, one.most);
        all.whole = all.whole && one.whole;
    }
    if (!all.fits(first.d)) return std::nullopt;
    return all.least < 0 ? DType::i8 : DType::u8;
}

void write(std::span<const VectorView> sets, const Team& team, std::byte* rows) {
    const std::int64_t d = sets[0].d;
    for_rows(
        sets, team, [] { return true; },
        [&](int, std::int64_t i, const float* row) {
            std::byte* to = rows + i * d;
            for (std::int64_t c = 0; c < d; ++c) to[c] = std::byte(int(row[c]));
        });
}

}  // namespace

bool may_pack(Metric metric, DType dtype, std::int64_t d) {
    return is_product(metric) && !is_byte(dtype) && d <= kMaxIntegerDim;
}

bool may_pack(const detail::Input& input, Metric metric) {
    const bool few = input.inserts && input.vectors[1].n < input.vectors[0].n / kInsertedAmong;
    return !(few && input.adjoining()) && may_pack(metric, input.dtype(), input.d());
}

std::optional<PackedRows> PackedRows::of_input(const detail::Input& input, Metric metric, const Team& team,
                                               Resources& resources) {
    if (!may_pack(input, metric)) return std::nullopt;
    return of(std::span(input.vectors), metric, team, resources);
}

std::optional<PackedRows> PackedRows::of(std::span<const VectorView> sets, Metric metric, const Team& team,
                                         Resources& resources) {
    const std::optional<DType> dtype = dtype_for(sets, metric, team);
    if (!dtype) return std::nullopt;
    std::int64_t n = 0;
    for (const VectorView& set : sets) n += set.n;
    PackedRows packed;
    const std::size_t bytes = std::size_t(n) * std::size_t(sets[0].d);
    if (!detail::fits([&] { packed.rows_ = Buffer<std::byte>(resources, bytes); })) return std::nullopt;
    write(sets, team, packed.rows_.data());
    packed.view_ = VectorView{packed.rows_.data(), n, sets[0].d, *dtype, 0};
    return packed;
}

}  // namespace gnnd::cpu
