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

/// Appends u to the samples of every v that it took, source after source from `start` on. A part of the sources at a
/// time: threads sort their edges by the range of v, then each thread takes one range, in the order of the sources. So
/// each edge is touched twice, however many threads there are, and the order of arrival is always the same.
void Samples::append_reverse(const Team& team, std::int64_t start) {
    struct Edge {
        std::int32_t to, from;  // from: u, or ~u where u took it as an OLD one
    };
    constexpr std::int64_t kPart = 1 << 12;  // sources of a thread at a time: about 1 MB of edges
    const std::int64_t threads = team.threads;
    std::vector<std::vector<Edge>> edges(threads * threads);  // of a thread's sources, to a thread's range
    const auto source = [&](std::int64_t step) { return start + step < n_ ? start + step : start + step - n_; };
    for (std::int64_t part = 0; part < n_; part += kPart * threads) {
        const std::int64_t sources = std::min(kPart * threads, n_ - part);
        team.for_chunks(threads, 1, [&](int, std::int64_t t, std::int64_t) {
            std::vector<Edge>* const mine = &edges[t * threads];
            for (std::int64_t r = 0; r < threads; ++r) mine[r].clear();
            for (std::int64_t step = t * sources / threads; step < (t + 1) * sources / threads; ++step) {
                const auto u = std::int32_t(source(part + step));
                const auto sort_out = [&](const std::int32_t* own, int count, std::int32_t from) {
                    for (int j = 0; j < count; ++j) mine[own[j] * threads / n_].push_back({own[j], from});
                };
                sort_out(new_of(u), counts_[u].new_own, u);
                sort_out(old_of(u), counts_[u].old_own, ~u);
            }
        });
        team.for_chunks(threads, 1, [&](int, std::int64_t r, std::int64_t) {
            for (std::int64_t t = 0; t < threads; ++t)
                for (const auto [to, from] : edges[t * threads + r]) {
                    const bool is_new = from >= 0;
                    std::uint16_t& size = is_new ? counts_[to].new_all : counts_[to].old_all;
                    std::int32_t* all = ids_.data() + std::int64_t(to) * 4 * p_ + (is_new ? 0 : 2 * p_);
                    if (size < 2 * p_) all[size++] = is_new ? from : ~from;
                }
        });
    }
}

void Samples::draw(State& state, int round) {
    state.team.for_chunks(n_, 256, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) draw_own(state, i);
    });
    // The start of the scan decides who comes first, and must not be the same objects every time.
    append_reverse(state.team, std::int64_t(Random(state.params.seed ^ 0x5a11, round).below(std::uint32_t(n_))));
}

}  // namespace gnnd::cpu
