// SPDX-License-Identifier: MIT
// build(), refine(), merge() and append() on the CPU: where each goes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/insert.h"
#include "gnnd/cpu/iterations.h"
#include "gnnd/cpu/pack.h"
#include "gnnd/cpu/recall.h"
#include "gnnd/cpu/steps.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/fits.h"
#include "gnnd/detail/insert.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/resolve.h"

namespace gnnd::cpu {
namespace {

/// The vectors of an input as one array; copied where they are not one already.
class Joined {
  public:
    Joined(const detail::Input& input, Resources& resources) : view_(input.vectors[0]) {
        view_.n = input.n();
        if (input.adjoining()) return;
        const std::size_t row = std::size_t(input.d()) * size_of(input.dtype());
        copy_ = Buffer<std::byte>(resources, std::size_t(input.n()) * row);
        std::byte* to = copy_.data();
        for (const VectorView& set : input.vectors)
            for (std::int64_t i = 0; i < set.n; ++i, to += row) std::memcpy(to, set.row(i), row);
        view_.data = copy_.data();
        view_.stride = 0;
    }
    const VectorView& view() const { return view_; }

  private:
    Buffer<std::byte> copy_;
    VectorView view_;
};

/// The old ones were checked when their graph was built.
void check_added(const VectorView& added, const BuildParams& params, const Callbacks& callbacks) {
    try {
        check_vectors(added, params.metric, params.threads, callbacks);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(std::string("append: of the added vectors: ") + error.what());
    }
}

State start(const Space& space, const BuildParams& params, const Choices& choices, detail::Pairs pairs,
            const Team& team, Resources& resources, int list_size) {
    const std::int64_t n = space.vectors.n;
    State state{space,
                params,
                choices,
                pairs,
                team,
                resources,
                Lists(n, list_size, resources),
                std::vector<Worker>(team.threads),
                Buffer<std::int32_t>(resources, n)};
    std::iota(state.order.begin(), state.order.end(), 0);
    return state;
}

void compare_all(const Space& space, detail::Pairs pairs, const BuildParams& params, const Choices& choices,
                 const Team& team, Resources& resources, BuildStats& stats, std::int32_t* ids, float* distances) {
    State state = start(space, params, choices, pairs, team, resources, params.k);
    compare_all(state);
    finish(state, ids, distances);
    stats.stop = StopReason::exact;
}

void iterate(const Space& space, const detail::Input& input, const BuildParams& params, const Choices& choices,
             const Team& team, const Callbacks& callbacks, Resources& resources, Clock& clock, BuildStats& stats,
             std::int32_t* ids, float* distances) {
    State state = start(space, params, choices, input.pairs(), team, resources, choices.list_size);
    Iterations(state, input, callbacks, clock, stats).run();
    finish(state, ids, distances);
}

/// After a search for the added objects, the recall of these and of the old ones. The graph goes through what refine()
/// does for the part that has less than was asked for, and once more for the other one if that has, too.
void raise_recall(const Space& space, const detail::Input& input, const BuildParams& params, const Team& team,
                  const Callbacks& callbacks, Resources& resources, Clock& clock, BuildStats& stats, std::int32_t* ids,
                  float* distances) {
    constexpr std::int64_t kLeast = 64;  // objects
    constexpr double kGain = 5;          // as measured_after() has it
    const std::int64_t n = input.n(), added = input.measured_as_inserted(), old = n - added;
    const std::int64_t most = detail::measured_after(added, n, kGain, kLeast);
    Measurement of_old(space, team, params, {0, old}, resources, most);
    Measurement of_added(space, team, params, {old, added}, resources, most);
    const auto first_ids = [&](std::int32_t object, int count, std::int32_t* first) {
        std::copy_n(ids + std::int64_t(object) * params.k, count, first);
    };
    const auto measure = [&] {
        const RecallEstimate here = of_old.measure(first_ids, INFINITY);
        stats.recall_added = of_added.measure(first_ids, INFINITY);
        stats.recall = detail::join_recalls(here, old, stats.recall_added, added);
        return detail::part_below(here, old, stats.recall_added, added, params.recall);
    };
    detail::Input whole{{space.vectors}, {{n, params.k, params.metric, ids, distances}}};
    whole.held = measure();
    std::int64_t refined = -1;
    for (int part = 0; part < 2 && whole.held.count != 0 && whole.held.first != refined; ++part) {
        if (part == 1 && stats.stop != StopReason::recall) break;
        refined = whole.held.first;
        const Choices choices = detail::resolve(params, whole, stats.device);
        if (choices.exhaustive)
            compare_all(space, {}, params, choices, team, resources, stats, ids, distances);
        else
            iterate(space, whole, params, choices, team, callbacks, resources, clock, stats, ids, distances);
        whole.held = measure();
    }
    stats.recall_seconds += of_old.seconds() + of_added.seconds();
}

/// \param vectors  of the input, as one array
BuildStats run_on(const VectorView& vectors, const detail::Input& input, const BuildParams& params,
                  const Choices& choices, const Team& team, const Callbacks& callbacks, CountedResources& resources,
                  Clock& clock, std::int32_t* ids, float* distances) {
    if (input.inserts)
        check_added(input.vectors[1], params, callbacks);
    else
        check_vectors(vectors, params.metric, params.threads, callbacks);
    BuildStats stats;
    stats.device = {Device::Kind::cpu, 0};
    stats.threads = team.threads;
    stats.choices = choices;

    const Space space(vectors, params.metric, team, resources);
    if (choices.exhaustive) {
        compare_all(space, input.all_pairs(), params, choices, team, resources, stats, ids, distances);
    } else if (input.inserts) {
        insert(space, input, params, team, callbacks, resources, stats, ids, distances);
        stats.stop = StopReason::searched;
        if (params.recall > 0)
            raise_recall(space, input, params, team, callbacks, resources, clock, stats, ids, distances);
    } else {
        iterate(space, input, params, choices, team, callbacks, resources, clock, stats, ids, distances);
    }
    stats.peak_work_bytes = std::int64_t(resources.peak());
    stats.seconds = clock.seconds();
    return stats;
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
    offered += other.offered;
    accepted += other.accepted;
    distances += other.distances;
    return *this;
}

void State::size_blocks(int max_rows, int max_columns) {
    for (Worker& worker : workers) {
        worker.block = Block();  // gives back the old one first
        worker.block = Block(space, max_rows, max_columns, resources);
        worker.offers.resize(std::max(max_rows, max_columns));
    }
}

Counters State::take_counters() {
    Counters sum;
    for (Worker& worker : workers) sum += std::exchange(worker.offers.counters, {});
    return sum;
}

IterationStats review(State& state) {
    struct alignas(64) Sum {
        double phi = 0;
        std::int64_t fresh = 0;
    };
    Lists& lists = state.lists;
    constexpr std::int64_t kChunk = 1024;
    // Summed chunk by chunk in a fixed order: the same phi on any number of threads.
    std::vector<Sum> sums((lists.n() + kChunk - 1) / kChunk);
    state.team.for_chunks(lists.n(), kChunk, [&](int, std::int64_t begin, std::int64_t end) {
        Sum& sum = sums[begin / kChunk];
        for (std::int64_t i = begin; i < end; ++i) {
            lists.start_round(i);
            const Entry* list = lists.of(i);
            for (int j = 0; j < lists.length() && list[j] != kEmpty; ++j) {
                if (j < state.params.k) sum.phi += state.space.value_of(key_of(list[j]));
                sum.fresh += is_new(list[j]);
            }
        }
    });
    IterationStats stats;
    stats.objects = lists.n();
    for (const Sum& sum : sums) {
        stats.phi += sum.phi;
        stats.changed += sum.fresh;
    }
    const Counters counters = state.take_counters();
    stats.offered = counters.offered;
    stats.accepted = counters.accepted;
    stats.distances = counters.distances;
    return stats;
}

BuildStats run(const detail::Input& input, const BuildParams& params, const Choices& choices,
               const Callbacks& callbacks, Resources& upstream, std::int32_t* ids, float* distances) {
    Clock clock;
    CountedResources resources(upstream);
    const Team team{Team::resolve(params.threads), &callbacks.interrupt};
    const auto run_here = [&](const VectorView& vectors) {
        return run_on(vectors, input, params, choices, team, callbacks, resources, clock, ids, distances);
    };
    if (auto packed = PackedRows::of_input(input, params.metric, team, resources)) {
        if (!input.adjoining()) return run_here(packed->view());  // floats would be copied, too
        BuildStats stats;
        if (detail::fits([&] { stats = run_here(packed->view()); })) return stats;
    }
    const Joined joined(input, resources);
    return run_here(joined.view());
}

}  // namespace gnnd::cpu

namespace gnnd::detail {

AppendedRows append_rows(const VectorView& vectors, const KnnGraphView& graph, const BuildParams& params,
                         const Callbacks& callbacks) {
    const cpu::Clock clock;
    VectorView old = vectors, added = vectors;
    old.n = graph.n;
    added.n = vectors.n - graph.n;
    added.data = vectors.row(graph.n);
    const Input input{.vectors = {old, added}, .graphs = {graph}, .inserts = true};
    cpu::check_added(added, params, callbacks);
    const cpu::Team team{cpu::Team::resolve(params.threads), &callbacks.interrupt};
    CountedResources resources(or_heap(nullptr));
    const auto packed = cpu::PackedRows::of_input(input, params.metric, team, resources);
    const cpu::Space space(packed ? packed->view() : vectors, params.metric, team, resources);
    AppendedRows result = cpu::insert_rows(space, input, params, team, callbacks, resources);
    result.stats.device = {Device::Kind::cpu, 0};
    result.stats.threads = team.threads;
    result.stats.choices = resolve(params, input, result.stats.device);
    result.stats.stop = StopReason::searched;
    result.stats.peak_work_bytes = std::int64_t(resources.peak());
    result.stats.seconds = clock.seconds();
    return result;
}

}  // namespace gnnd::detail
