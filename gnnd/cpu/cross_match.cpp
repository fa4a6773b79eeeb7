// SPDX-License-Identifier: MIT
// Steps 3 and 4: cross-match and update.
#include <algorithm>

#include "gnnd/cpu/steps.h"

namespace gnnd::cpu {
namespace {

/// Drops repeated ids; those that come first stay. The scratch table is all -1 before and after.
int drop_repeated(std::int32_t* ids, int count, std::vector<std::int32_t>& table) {
    const auto mask = std::uint32_t(table.size() - 1);
    int kept = 0;
    for (int i = 0; i < count; ++i) {
        std::uint32_t slot = std::uint32_t(ids[i]) * 2654435769u >> 7 & mask;
        while (table[slot] != -1 && table[slot] != ids[i]) slot = (slot + 1) & mask;
        if (table[slot] == ids[i]) continue;
        table[slot] = ids[i];
        ids[kept++] = ids[i];
    }
    return kept;
}

/// The first column that row i is compared with: NEW samples with each other and with OLD ones; in GGM, where they are
/// of different sets (see sample.cpp), with OLD ones only.
int first_column(const State& state, int i, int new_count) {
    return state.pairs.all() ? i + 1 : new_count;
}

/// Classic NN-Descent: every pair is offered to both lists.
void update_all(State& state, Worker& worker, int new_count, int count) {
    const std::int32_t* ids = worker.ids.data();
    for (int i = 0; i < new_count; ++i) {
        const float* row = worker.block.row(i);
        const int hits = state.space.kernels.within(row, first_column(state, i, new_count), count, worker.bounds[i],
                                                    worker.bounds.data(), worker.hits.data());
        for (int h = 0; h < hits; ++h) {
            const int j = worker.hits[h];
            if (row[j] <= worker.bounds[i]) worker.offers.add(state.lists, ids, i, ids[j], row[j]);
            if (row[j] <= worker.bounds[j]) worker.offers.add(state.lists, ids, j, ids[i], row[j]);
        }
    }
}

/// The paper's selective update: a NEW sample's list is offered its nearest NEW and its nearest OLD partner, an OLD
/// sample's its nearest NEW partner.
void update_selectively(State& state, Worker& worker, int new_count, int count) {
    const std::int32_t* ids = worker.ids.data();
    const Kernels& kernels = state.space.kernels;
    float* nearest_keys = worker.nearest_keys.data();
    std::int32_t* nearest = worker.nearest.data();
    const auto offer = [&](int i, int j, float key) {
        if (key <= worker.bounds[i]) worker.offers.add(state.lists, ids, i, ids[j], key);
    };
    // Column j collects the nearest of the rows i < j; the rest of a NEW sample's partners stand in its own row.
    std::fill_n(nearest_keys, count, HUGE_VALF);
    for (int i = 0; i < new_count; ++i) {
        const float* row = worker.block.row(i);
        const int first = first_column(state, i, new_count);
        kernels.keep_nearer(row, first, count, i, nearest_keys, nearest);
        if (first < new_count) {
            const int j = kernels.nearest(row, first, new_count);
            if (row[j] < nearest_keys[i]) {
                nearest_keys[i] = row[j];
                nearest[i] = j;
            }
        }
        if (new_count < count) {
            const int j = kernels.nearest(row, new_count, count);
            offer(i, j, row[j]);
        }
    }
    for (int j = 0; j < count; ++j)
        if (nearest_keys[j] < HUGE_VALF) offer(j, nearest[j], nearest_keys[j]);
}

/// The objects that are worked on next are as good as random to the processor: what they need is asked for while there
/// is something to compute, the samples two objects ahead and what they lead to one ahead.
void prefetch_next(const State& state, const Samples& samples, std::int64_t o) {
    const std::int64_t n = state.lists.n();
    if (o + 2 < n) samples.prefetch(state.order[o + 2]);
    if (o + 1 >= n) return;
    const std::int32_t next = state.order[o + 1];
    if (samples.new_count(next) == 0) return;
    const auto prefetch = [&](const std::int32_t* ids, int count) {
        for (int i = 0; i < count; ++i) {
            state.space.prefetch(ids[i]);
            state.lists.prefetch_bound(ids[i]);
        }
    };
    prefetch(samples.new_of(next), samples.new_count(next));
    prefetch(samples.old_of(next), samples.old_count(next));
}

}  // namespace

void cross_match(State& state, const Samples& samples) {
    const int capacity = samples.capacity();
    state.size_blocks(capacity, 2 * capacity);
    std::size_t table_size = 64;
    while (table_size < std::size_t(4 * capacity)) table_size *= 2;
    for (Worker& worker : state.workers) {
        worker.ids.resize(2 * capacity);
        worker.hits.resize(2 * capacity + kSpareHits);
        worker.nearest.assign(table_size, -1);
        worker.bounds.resize(2 * capacity);
        worker.nearest_keys.resize(2 * capacity);
    }
    const bool selective = state.params.update == Update::selective;
    std::vector<std::vector<std::int32_t>> tables(state.workers.size(), std::vector<std::int32_t>(table_size, -1));

    state.team.for_chunks(state.lists.n(), 64, [&](int thread, std::int64_t begin, std::int64_t end) {
        Worker& worker = state.workers[thread];
        std::int32_t* ids = worker.ids.data();
        for (std::int64_t o = begin; o < end; ++o) {
            const std::int32_t u = state.order[o];
            prefetch_next(state, samples, o);
            if (samples.new_count(u) == 0) continue;
            std::copy_n(samples.new_of(u), samples.new_count(u), ids);
            const int new_count = drop_repeated(ids, samples.new_count(u), tables[thread]);
            std::copy_n(samples.old_of(u), samples.old_count(u), ids + new_count);
            const int old_count = drop_repeated(ids + new_count, samples.old_count(u), tables[thread]);
            std::fill(tables[thread].begin(), tables[thread].end(), -1);
            const int count = new_count + old_count;
            if (count < 2) continue;
            for (int i = 0; i < count; ++i) worker.bounds[i] = state.lists.bound(ids[i]);
            worker.block.compute_triangle(ids, new_count, count);
            worker.offers.counters.distances +=
                (state.pairs.all() ? new_count * (new_count - 1) / 2 : 0) + new_count * old_count;
            if (selective)
                update_selectively(state, worker, new_count, count);
            else
                update_all(state, worker, new_count, count);
            worker.offers.flush_all(state.lists, ids, count);
        }
    });
}

}  // namespace gnnd::cpu
