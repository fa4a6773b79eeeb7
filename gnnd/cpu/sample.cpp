// SPDX-License-Identifier: MIT
// Step 2: the paper's ParallelSample.
#include <algorithm>

#include "gnnd/cpu/steps.h"
#include "gnnd/random.h"

namespace gnnd::cpu {

Samples::Samples(std::int64_t n, int p, Resources& resources)
    : n_(n), p_(p), ids_(resources, n * 4 * p), counts_(resources, n) {}

void Samples::draw_own(State& state, std::int64_t i) {
    // In GGM entries of the other set are NEW until they are sampled, and then of no use as OLD ones: their pairs with
    // NEW samples lie inside of that set.
    const auto useful = [&](std::int32_t v) {
        return state.pairs.all() || !state.pairs.count(std::uint32_t(i), std::uint32_t(v));
    };
    std::int32_t* new_ids = ids_.data() + i * 4 * p_;
    std::int32_t* old_ids = new_ids + 2 * p_;
    int new_count = 0, old_count = 0;
    Entry* list = state.lists.of(i);
    for (int j = 0; j < state.lists.length() && list[j] != kEmpty; ++j) {
        if (is_new(list[j])) {
            if (new_count == p_) continue;
            new_ids[new_count++] = id_of(list[j]);
            list[j] &= ~Entry(1);
        } else if (old_count < p_ && useful(id_of(list[j]))) {
            old_ids[old_count++] = id_of(list[j]);
        }
    }
    counts_[i] = {std::uint16_t(new_count), std::uint16_t(old_count), std::uint16_t(new_count),
                  std::uint16_t(old_count)};
}

/// Fills the samples of objects [first, last). All threads read all own samples, which nobody writes meanwhile, and
/// each writes to its own objects: no locks, and the order of arrival is always the same.
void Samples::append_reverse(std::int64_t first, std::int64_t last, std::int64_t start) {
    const auto append = [&](const std::int32_t* own, int count, std::int32_t u, std::int32_t* all,
                            std::uint16_t Counts::*total) {
        for (int j = 0; j < count; ++j) {
            const std::int32_t v = own[j];
            if (v < first || v >= last) continue;
            std::uint16_t& size = counts_[v].*total;
            if (size < 2 * p_) all[std::int64_t(v) * 4 * p_ + size++] = u;
        }
    };
    for (std::int64_t step = 0; step < n_; ++step) {
        std::int64_t u = start + step;
        if (u >= n_) u -= n_;
        append(new_of(u), counts_[u].new_own, std::int32_t(u), ids_.data(), &Counts::new_all);
        append(old_of(u), counts_[u].old_own, std::int32_t(u), ids_.data() + 2 * p_, &Counts::old_all);
    }
}

void Samples::draw(State& state, int round) {
    state.team.for_chunks(n_, 256, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) draw_own(state, i);
    });
    // Where the scan starts decides who comes first, and must not be the same objects every time.
    const auto start = std::int64_t(Random(state.params.seed ^ 0x5a11, round).below(std::uint32_t(n_)));
    const std::int64_t threads = state.team.threads;
    state.team.for_chunks(threads, 1, [&](int, std::int64_t t, std::int64_t) {
        append_reverse(t * n_ / threads, (t + 1) * n_ / threads, start);
    });
}

}  // namespace gnnd::cpu
