// SPDX-License-Identifier: MIT
#include "gnnd/cpu/operations/edges.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "gnnd/detail/checks.h"

namespace gnnd::cpu {
namespace {

/// The smallest index that any thread has found.
class First {
  public:
    explicit First(std::int64_t none) : value_(none) {}
    void offer(std::int64_t i) {
        for (std::int64_t least = value_; i < least && !value_.compare_exchange_weak(least, i);) continue;
    }
    std::int64_t get() const { return value_; }

  private:
    std::atomic<std::int64_t> value_;
};

/// True if the whole row is good, without a branch for each entry.
bool is_good(const Edges& edges, std::int64_t i) {
    const std::int32_t* ids = edges.ids_of(i);
    const float* values = edges.values_of(i);
    const float sign = edges.larger_is_nearer ? -1.f : 1.f;
    const auto n = std::int32_t(edges.n), self = std::int32_t(i);
    int bad = int(!(values[0] == values[0]));
    for (std::int64_t j = 0; j < edges.columns; ++j) bad |= int(ids[j] < -1) | int(ids[j] >= n) | int(ids[j] == self);
    for (std::int64_t j = 1; j < edges.columns; ++j)
        bad |= int((ids[j - 1] < 0) & (ids[j] >= 0)) | int(!(sign * values[j - 1] <= sign * values[j]));
    return bad == 0;
}

}  // namespace

Team team_of(int threads, const std::function<bool()>* interrupt) {
    detail::check_range("EdgeParams", "threads (0: all)", threads, 0, 4096);
    return {Team::resolve(threads), interrupt};
}

Edges checked_edges(const char* who, const KnnGraphView& graph, int neighbors, const Team& team) {
    const Edges edges = detail::edges_of_shape(who, graph, neighbors);
    if (graph.n == 0) return edges;
    detail::check_reach({Device::Kind::cpu, 0}, {graph.ids, graph.distances});
    First bad(edges.n);
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            if (!is_good(edges, i)) return bad.offer(i);
    });
    if (const std::int64_t i = bad.get(); i < edges.n)
        detail::refuse_row(who, edges, i, edges.ids_of(i), edges.values_of(i));
    return edges;
}

OwnedEdges edges_of(const char* who, const KnnGraphView& graph, const EdgeParams& params, const Team& team) {
    detail::check_cut(who, params);
    OwnedEdges own{checked_edges(who, graph, params.neighbors, team), {}};
    Edges& edges = own.edges;
    if (params.values == GraphValues::distance) {
        edges.larger_is_nearer = false;
        own.values.resize(std::size_t(graph.n * graph.k));
        convert_to_distances(who, graph.metric, graph.distances, graph.n * graph.k, graph.k, own.values.data(), team);
        edges.values = own.values.data();
    }
    if (params.radius) (edges.larger_is_nearer ? edges.low : edges.high) = *params.radius;
    return own;
}

void convert_to_distances(const char* who, Metric metric, const float* values, std::int64_t count, std::int64_t k,
                          float* out, const Team& team) {
    constexpr std::int64_t kAtOnce = 1 << 16;
    First bad(count);
    visit(metric, [&](auto m) {
        const auto is_bad = [](float value) { return detail::has_no_distance<decltype(m)>(value); };
        team.for_chunks(count, kAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
            // First, since `out` may be `values`, of which the message tells.
            int faults = 0;
            for (std::int64_t i = begin; i < end; ++i) faults |= int(is_bad(values[i]));
            if (faults != 0) return bad.offer(std::find_if(values + begin, values + end, is_bad) - values);
            for (std::int64_t i = begin; i < end; ++i) out[i] = m.true_distance(values[i]);
        });
    });
    if (bad.get() < count) detail::refuse_value(who, metric, values[bad.get()], bad.get(), k);
}

std::int64_t count_full(const Edges& edges, const Team& team, std::span<const std::int64_t> times) {
    if (edges.n < 2) return 0;
    const std::int64_t last = std::min(edges.columns, edges.n - 1) - 1;
    std::atomic<std::int64_t> full{0};
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        std::int64_t count = 0;
        for (std::int64_t i = begin; i < end; ++i)
            if (edges.counts(edges.ids_of(i)[last], edges.values_of(i)[last]))
                count += times.empty() ? 1 : times[std::size_t(i)];
        full += count;
    });
    return full;
}

std::int64_t add_up(Array<std::int64_t>& indptr, const Team& team) {
    constexpr std::int64_t kAtOnce = 1 << 16;
    const std::int64_t n = std::int64_t(indptr.size()) - 1, parts = (n + kAtOnce - 1) / kAtOnce;
    std::vector<std::int64_t> before(std::size_t(parts) + 1);
    const auto sum = [&](std::int64_t begin, std::int64_t end, std::int64_t total) {
        for (std::int64_t i = begin; i < end; ++i) total += indptr[i + 1];
        return total;
    };
    team.for_chunks(n, kAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        before[std::size_t(begin / kAtOnce) + 1] = sum(begin, end, 0);
    });
    for (std::int64_t p = 0; p < parts; ++p) before[std::size_t(p) + 1] += before[std::size_t(p)];
    team.for_chunks(n, kAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        std::int64_t total = before[std::size_t(begin / kAtOnce)];
        for (std::int64_t i = begin; i < end; ++i) indptr[i + 1] = total += indptr[i + 1];
    });
    return indptr[0] = 0, before.back();
}

}  // namespace gnnd::cpu
