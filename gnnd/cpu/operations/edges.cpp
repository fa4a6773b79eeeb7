// SPDX-License-Identifier: MIT
#include "gnnd/cpu/operations/edges.h"

#include <atomic>
#include <string>
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

/// Says what is wrong with the entry; the row before it is good.
std::string fault_of_entry(const Edges& edges, std::int64_t i, std::int64_t j) {
    const std::int32_t* ids = edges.ids_of(i);
    const float* values = edges.values_of(i);
    if (ids[j] < -1 || ids[j] >= edges.n)
        return "id " + std::to_string(ids[j]) + " is outside of [0, " + std::to_string(edges.n) + ")";
    if (ids[j] == i) return "holds itself";
    if (j > 0 && ids[j] >= 0 && ids[j - 1] < 0) return "-1 before id " + std::to_string(ids[j]);
    if (std::isnan(values[j])) return "the value of entry " + std::to_string(j) + " is NaN";
    return "entry " + std::to_string(j) + " is nearer than the one before it";
}

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

[[noreturn]] void refuse_row(const char* who, const Edges& edges, std::int64_t i) {
    const float sign = edges.larger_is_nearer ? -1.f : 1.f;
    std::int64_t j = 0;
    for (; j + 1 < edges.columns; ++j) {
        const std::int32_t id = edges.ids_of(i)[j];
        const float value = edges.values_of(i)[j];
        const bool good =
            id >= -1 && id < edges.n && id != i && !std::isnan(value) &&
            (j == 0 || (!(edges.ids_of(i)[j - 1] < 0 && id >= 0) && sign * edges.values_of(i)[j - 1] <= sign * value));
        if (!good) break;
    }
    throw InvalidArgument(std::string(who) + ": graph row " + std::to_string(i) + ": " + fault_of_entry(edges, i, j));
}

}  // namespace

Team team_of(int threads, const std::function<bool()>* interrupt) {
    detail::check_range("EdgeParams", "threads (0: all)", threads, 0, 4096);
    return {Team::resolve(threads), interrupt};
}

Edges checked_edges(const char* who, const KnnGraphView& graph, int neighbors, const Team& team) {
    const std::string call(who);
    Edges edges;
    edges.larger_is_nearer = is_similarity(graph.metric);  // throws for a number that is no metric
    edges.n = graph.n;
    edges.k = graph.k;
    edges.columns = neighbors > 0 ? neighbors : graph.k;
    edges.ids = graph.ids;
    edges.values = graph.distances;
    if (graph.n < 0 || graph.n > kMaxObjects)
        throw InvalidArgument(call + ": the graph has " + std::to_string(graph.n) + " rows, allowed are 0 to " +
                              std::to_string(kMaxObjects));
    if (graph.n == 0) return edges;  // of no columns, perhaps
    if (graph.k < 1 || graph.k > kMaxColumns)
        throw InvalidArgument(call + ": the graph has " + std::to_string(graph.k) + " columns, allowed are 1 to " +
                              std::to_string(kMaxColumns));
    if (neighbors < 0 || neighbors > graph.k)
        throw InvalidArgument(call + ": neighbors = " + std::to_string(neighbors) + ", allowed are 1 to the graph's " +
                              std::to_string(graph.k) + ", and 0 for all of them");
    if (graph.ids == nullptr || graph.distances == nullptr)
        throw InvalidArgument(call + ": the graph's arrays are null pointers");
    detail::check_reach({Device::Kind::cpu, 0}, {graph.ids, graph.distances});
    First bad(edges.n);
    team.for_chunks(edges.n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            if (!is_good(edges, i)) return bad.offer(i);
    });
    if (bad.get() < edges.n) refuse_row(who, edges, bad.get());
    return edges;
}

OwnedEdges edges_of(const char* who, const KnnGraphView& graph, const EdgeParams& params, const Team& team) {
    name_of(params.values);  // throws for a number that is none
    if (params.radius && std::isnan(*params.radius))
        throw InvalidArgument(std::string(who) + ": EdgeParams::radius is NaN");
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
    constexpr float kRounded =
        1.01f;  // bfloat16 vectors of length 1 have inner products of up to 1.004 with themselves
    First bad(count);
    visit(metric, [&](auto m) {
        const auto is_bad = [&](float value) { return m.similarity ? !(value <= kRounded) : !(value >= 0); };
        team.for_chunks(count, kAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
            // First, since `out` may be `values`, of which the message tells.
            int faults = 0;
            for (std::int64_t i = begin; i < end; ++i) faults |= int(is_bad(values[i]));
            if (faults != 0) return bad.offer(std::find_if(values + begin, values + end, is_bad) - values);
            for (std::int64_t i = begin; i < end; ++i) out[i] = m.true_distance(values[i]);
        });
    });
    if (bad.get() == count) return;
    const std::string where =
        k > 0 ? "graph row " + std::to_string(bad.get() / k) + ", entry " + std::to_string(bad.get() % k)
              : "value " + std::to_string(bad.get());
    throw InvalidArgument(std::string(who) + ": " + where + ": " + std::to_string(values[bad.get()]) +
                          (is_similarity(metric) && values[bad.get()] > kRounded
                               ? " is no similarity of vectors of length 1, for others there is no distance"
                               : " is no value of " + std::string(name_of(metric))));
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
