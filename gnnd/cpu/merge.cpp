// SPDX-License-Identifier: MIT
// GGM on the CPU, the paper's Algorithm 3: what comes before and after the iterations, which are GNND's.
#include <algorithm>

#include "gnnd/cpu/steps.h"

namespace gnnd::cpu {
namespace {

enum class Columns { kept, set_aside };

void insert_columns(State& state, const detail::Input& input, Columns which) {
    state.team.for_chunks(input.n(), 256, [&](int, std::int64_t first, std::int64_t last) {
        std::vector<Entry> entries;
        for (std::int64_t i = first; i < last; ++i) {
            const int set = input.set_of(i);
            const KnnGraphView& graph = input.graphs[set];
            const std::int64_t row = input.number_in(set, i);
            const std::int64_t kept = detail::kept_columns(graph, state.params);
            const std::int64_t begin = which == Columns::kept ? 0 : kept;
            const std::int64_t end = which == Columns::kept ? kept : graph.k;
            entries.clear();
            for (std::int64_t j = begin; j < end; ++j) {
                const std::int32_t id = graph.ids_of(row)[j];
                if (id < 0 || id == row) continue;
                const float key = state.space.key_of(graph.distances_of(row)[j]);
                entries.push_back(make_entry(key, std::int32_t(id + i - row), false));
            }
            state.lists.start_round(i);
            state.lists.take(i, entries.data(), int(entries.size()));
        }
    });
}

}  // namespace

void load_graphs(State& state, const detail::Input& input) {
    insert_columns(state, input, Columns::kept);
}

void take_back(State& state, const detail::Input& input) {
    insert_columns(state, input, Columns::set_aside);
}

}  // namespace gnnd::cpu
