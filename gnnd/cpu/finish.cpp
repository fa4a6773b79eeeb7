// SPDX-License-Identifier: MIT
// Step 5: from lists to a graph.
#include <algorithm>

#include "gnnd/cpu/steps.h"
#include "gnnd/random.h"

namespace gnnd::cpu {
namespace {

/// Tops a short list up with random objects. Rare: sampling reaches every list many times over unless k is close to n
/// or there are hardly any iterations.
void fill_up(State& state, Worker& worker, std::int32_t i) {
    const std::int64_t n = state.lists.n();
    const int wanted = int(std::min<std::int64_t>(state.params.k, n - 1));
    Random random(state.params.seed ^ 0xf111, i);
    while (state.lists.of(i)[wanted - 1] == kEmpty) {
        const auto id = std::int32_t(random.below(std::uint32_t(n)));
        if (id == i) continue;
        worker.block.compute(&i, 1, &id, 1);
        const Entry entry = make_entry(worker.block.row(0)[0], id, true);
        state.lists.take(i, &entry, 1);
    }
}

}  // namespace

void finish(State& state, std::int32_t* ids, float* distances) {
    const std::int64_t n = state.lists.n();
    const int k = state.params.k;
    const float worst = worst_value(state.params.metric);
    const int used = int(std::min<std::int64_t>(k, n - 1));
    state.size_blocks(1, 1);
    state.team.for_chunks(n, 256, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            fill_up(state, state.workers[thread], std::int32_t(i));
            const Entry* list = state.lists.of(i);
            for (int j = 0; j < used; ++j) {
                ids[i * k + j] = id_of(list[j]);
                distances[i * k + j] = state.space.value_of(key_of(list[j]));
            }
            std::fill(ids + i * k + used, ids + (i + 1) * k, -1);
            std::fill(distances + i * k + used, distances + (i + 1) * k, worst);
        }
    });
}

}  // namespace gnnd::cpu
