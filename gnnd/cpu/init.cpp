// SPDX-License-Identifier: MIT
// Step 1: the initial lists.
#include <algorithm>
#include <array>
#include <numeric>

#include "gnnd/cpu/steps.h"
#include "gnnd/random.h"

namespace gnnd::cpu {
namespace {

constexpr std::int64_t kChunk = 64;

struct Projected {
    float value;
    std::int32_t id;
    bool operator<(const Projected& other) const {
        return value < other.value || (value == other.value && id < other.id);
    }
};
static_assert(sizeof(Projected) == kTreeBytes);

/// Up to `count` distinct ones of [first, first + size) other than i, picked by the init. One that picks the same again
/// and again gives fewer.
template <class Pick>
void pick_others(Random& random, std::uint32_t first, std::uint32_t size, std::int32_t i, int count,
                 std::vector<std::int32_t>& out) {
    constexpr int kTries = 64;
    out.clear();
    for (int tries = 0; int(out.size()) < count && tries < kTries * count; ++tries) {
        const int j = int(out.size()) + tries % kTries;
        const auto hash = std::uint32_t(random.next() >> 32);
        const auto id = std::int32_t(first + Pick::pick(std::uint32_t(i), j, size, hash));
        if (id != i && std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    }
}

/// Offers the objects `ids` to the list of object i.
void offer_to(State& state, Worker& worker, std::int32_t i, const std::int32_t* ids, int count) {
    worker.block.compute(&i, 1, ids, count);
    worker.offers.counters.distances += count;
    for (int j = 0; j < count; ++j) worker.offers.add(state.lists, &i, 0, ids[j], worker.block.row(0)[j]);
    worker.offers.flush_all(state.lists, &i, 1);
}

/// Sorts the objects of a node by which of two random ones of them is nearer, the lesser half first.
void split(Worker& worker, Projected* objects, std::int64_t count, std::int64_t half, Random random) {
    const std::int64_t a = random.below(std::uint32_t(count));
    std::int64_t b = random.below(std::uint32_t(count - 1));
    b += b >= a;
    const std::int32_t pivots[2] = {objects[a].id, objects[b].id};
    std::array<std::int32_t, kLeaf> ids{};
    for (std::int64_t begin = 0; begin < count; begin += kLeaf) {
        const int rows = int(std::min<std::int64_t>(kLeaf, count - begin));
        for (int i = 0; i < rows; ++i) ids[i] = objects[begin + i].id;
        worker.block.compute(ids.data(), rows, pivots, 2);
        for (int i = 0; i < rows; ++i) objects[begin + i].value = worker.block.row(i)[0] - worker.block.row(i)[1];
    }
    worker.offers.counters.distances += 2 * count;
    std::nth_element(objects, objects + half, objects + count);
}

/// Offers all objects of a leaf to each other, as far as their pairs count.
void join_leaf(State& state, Worker& worker, const Projected* objects, int count) {
    std::array<std::int32_t, kLeaf> ids{};
    std::array<float, kLeaf> bounds;
    for (int i = 0; i < count; ++i) {
        ids[i] = objects[i].id;
        bounds[i] = state.lists.bound(ids[i]);
    }
    worker.block.compute_triangle(ids.data(), count, count);
    worker.offers.counters.distances += count * (count - 1) / 2;
    for (int i = 0; i < count; ++i) {
        const float* row = worker.block.row(i);
        for (int j = i + 1; j < count; ++j) {
            if (!state.pairs.count(ids[i], ids[j])) continue;
            if (row[j] <= bounds[i]) worker.offers.add(state.lists, ids.data(), i, ids[j], row[j]);
            if (row[j] <= bounds[j]) worker.offers.add(state.lists, ids.data(), j, ids[i], row[j]);
        }
    }
    worker.offers.flush_all(state.lists, ids.data(), count);
}

}  // namespace

void init_neighbors(State& state) {
    const std::int64_t n = state.lists.n();
    const int list_size = state.lists.length();
    const int wanted = state.pairs.all() ? state.choices.samples : list_size / 2;
    const auto pick_others = visit(state.params.init, []<class Way>(Way) -> decltype(&cpu::pick_others<inits::random>) {
        if constexpr (Way::trees)
            return nullptr;  // init_from_trees() is its step
        else
            return cpu::pick_others<Way>;
    });
    state.size_blocks(1, wanted);
    state.team.for_chunks(n, kChunk, [&](int thread, std::int64_t begin, std::int64_t end) {
        Worker& worker = state.workers[thread];
        for (std::int64_t i = begin; i < end; ++i) {
            Random random(state.params.seed, i);
            const std::uint32_t partners = state.pairs.partners(std::uint32_t(i), std::uint32_t(n));
            const int count = int(std::min(std::uint32_t(wanted), partners));
            pick_others(random, state.pairs.first_partner(std::uint32_t(i)), partners, std::int32_t(i), count,
                        worker.ids);
            offer_to(state, worker, std::int32_t(i), worker.ids.data(), int(worker.ids.size()));
        }
    });
}

void add_random(State& state, int count, std::uint64_t round) {
    const auto n = std::uint32_t(state.lists.n());
    state.size_blocks(1, std::max(count, 1));
    state.team.for_chunks(n, kChunk, [&](int thread, std::int64_t begin, std::int64_t end) {
        Worker& worker = state.workers[thread];
        for (std::int64_t i = begin; i < end; ++i) {
            Random random(state.params.seed ^ (round << 32), std::uint64_t(i));
            pick_others<inits::random>(random, 0, n, std::int32_t(i), std::min(count, int(n) - 1), worker.ids);
            offer_to(state, worker, std::int32_t(i), worker.ids.data(), int(worker.ids.size()));
        }
    });
}

void init_from_trees(State& state) {
    const std::int64_t n = state.lists.n();
    const int trees = state.choices.trees;
    int levels = 0;
    while ((n + (std::int64_t(1) << levels) - 1) >> levels > kLeaf) ++levels;
    // Node j of a level with 2^l nodes holds [j n / 2^l, (j + 1) n / 2^l): known beforehand, whatever the data.
    const auto bound = [n](int level, std::int64_t node) { return (node * n) >> level; };

    state.size_blocks(kLeaf, kLeaf);
    Buffer<Projected> objects(state.resources, std::min(trees, kTreesAtOnce) * n);
    for (int first = 0; first < trees; first += kTreesAtOnce) {
        const int count = std::min(kTreesAtOnce, trees - first);
        for (int t = 0; t < count; ++t)
            for (std::int64_t i = 0; i < n; ++i) objects[t * n + i] = {0, std::int32_t(i)};
        for (int level = 0; level <= levels; ++level) {
            const std::int64_t nodes = std::int64_t(1) << level;
            const std::int64_t chunk = level == levels ? 8 : 1;
            state.team.for_chunks(count * nodes, chunk, [&](int thread, std::int64_t begin, std::int64_t end) {
                Worker& worker = state.workers[thread];
                for (std::int64_t c = begin; c < end; ++c) {
                    const std::int64_t tree = c / nodes, node = c % nodes;
                    const std::int64_t from = bound(level, node), to = bound(level, node + 1);
                    Projected* here = objects.data() + tree * n + from;
                    if (level == levels)
                        join_leaf(state, worker, here, int(to - from));
                    else
                        split(worker, here, to - from, bound(level + 1, 2 * node + 1) - from,
                              Random(state.params.seed, (std::uint64_t(first + tree) << 40) + nodes + node));
                }
            });
        }
    }
    for (std::int64_t i = 0; i < n; ++i) state.order[i] = objects[i].id;
}

void init_from_graph(State& state, const KnnGraphView& graph) {
    const int most = int(graph.k);
    state.size_blocks(1, most);
    state.team.for_chunks(graph.n, kChunk, [&](int thread, std::int64_t begin, std::int64_t end) {
        Worker& worker = state.workers[thread];
        for (std::int64_t i = begin; i < end; ++i) {
            worker.ids.clear();
            for (int j = 0; j < most; ++j) {
                const std::int32_t id = graph.ids_of(i)[j];
                if (id >= 0 && id != i) worker.ids.push_back(id);
            }
            offer_to(state, worker, std::int32_t(i), worker.ids.data(), int(worker.ids.size()));
        }
    });
}

}  // namespace gnnd::cpu
