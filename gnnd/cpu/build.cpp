// SPDX-License-Identifier: MIT
// GNND on the CPU: the loop.
#include <chrono>
#include <cstring>
#include <numeric>

#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/insert.h"
#include "gnnd/cpu/steps.h"
#include "gnnd/detail/report.h"

namespace gnnd::cpu {
namespace {

class Clock {
  public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
    /// Seconds since the last call.
    double lap() {
        const double now = seconds(), last = last_;
        last_ = now;
        return now - last;
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double last_ = 0;
};

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

/// The input's graph in the caller's arrays, by GNND's iterations (or GGM's: those of a merge).
void iterate(const Space& space, const detail::Input& input, const BuildParams& params, const Choices& choices,
             const Team& team, const Callbacks& callbacks, Resources& resources, Clock& clock, BuildStats& stats,
             std::int32_t* ids, float* distances) {
    const std::int64_t n = input.n();
    State state{space,
                params,
                choices,
                input.pairs(),
                team,
                resources,
                Lists(n, choices.list_size, resources),
                std::vector<Worker>(team.threads),
                Buffer<std::int32_t>(resources, n)};
    std::iota(state.order.begin(), state.order.end(), 0);
    const auto report = [&](int iteration) {
        IterationStats here = review(state);
        here.iteration = iteration;
        here.seconds = clock.lap();
        detail::report(here, stats, callbacks);
        return double(here.changed);
    };

    if (input.merges()) load_graphs(state, input);
    if (input.refines())
        init_from_graph(state, input.graphs[0]);
    else if (grows_trees(params.init))
        init_from_trees(state);
    else
        init_neighbors(state);
    report(0);
    {
        Samples samples(n, choices.samples, resources);
        const double threshold = detail::convergence_threshold(params, input);
        for (int iteration = 1; iteration <= params.iterations; ++iteration) {
            samples.draw(state, iteration);
            cross_match(state, samples);
            if (report(iteration) < threshold) {
                stats.stop = StopReason::converged;
                break;
            }
        }
    }
    if (input.merges()) take_back(state, input);
    finish(state, ids, distances);
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
    const Joined joined(input, resources);
    const VectorView& vectors = joined.view();
    if (input.inserts)
        check_added(input.vectors[1], params, callbacks);
    else
        check_vectors(vectors, params.metric, params.threads, callbacks);
    const Team team{Team::resolve(params.threads), &callbacks.interrupt};
    BuildStats stats;
    stats.device = {Device::Kind::cpu, 0};
    stats.threads = team.threads;
    stats.choices = choices;

    const Space space(vectors, params.metric, team, resources);
    if (choices.exhaustive) {
        std::vector<std::int32_t> all(vectors.n);
        std::iota(all.begin(), all.end(), 0);
        nearest_among(space, team, all.data(), vectors.n, nullptr, vectors.n, params.k, resources, ids, distances);
        stats.stop = StopReason::exact;
    } else if (input.inserts) {
        insert(space, input, params, team, callbacks, resources, stats, ids, distances);
        stats.stop = StopReason::searched;
    } else {
        iterate(space, input, params, choices, team, callbacks, resources, clock, stats, ids, distances);
    }
    stats.peak_work_bytes = std::int64_t(resources.peak());
    stats.seconds = clock.seconds();
    return stats;
}

}  // namespace gnnd::cpu
