// SPDX-License-Identifier: MIT
// Weights of pairs by the neighbours that they share.
#include <vector>

#include "gnnd/cpu/operations/join.h"
#include "gnnd/cpu/operations/operations.h"

namespace gnnd::cpu {
namespace {

/// A set of ids, one bit each.
class Bits {
  public:
    explicit Bits(std::int64_t n) : words_(std::size_t(n / 64 + 1)) {}
    void set(std::int32_t id) { words_[std::size_t(id) / 64] |= std::uint64_t(1) << (id % 64); }
    /// Of the word that the id is in.
    void clear(std::int32_t id) { words_[std::size_t(id) / 64] = 0; }
    int has(std::int32_t id) const { return int(words_[std::size_t(id) / 64] >> (id % 64) & 1); }

  private:
    std::vector<std::uint64_t> words_;
};

/// The Jaccard index of row i and each of the rows that it names; its ids, and i itself where it counts, are the set.
void weigh_row(const Edges& edges, std::int64_t i, bool with_self, const Bits& set, float* weights) {
    const int own = edges.length_of(i);
    for (int j = 0; j < own; ++j) {
        const std::int32_t other = edges.ids_of(i)[j];
        const std::int32_t* ids = edges.ids_of(other);
        // The rows lie anywhere: the one after the next is on its way meanwhile.
        if (j + 2 < own) {
            const std::int32_t* later = edges.ids_of(edges.ids_of(i)[j + 2]);
            for (std::int64_t c = 0; c < edges.columns; c += 16) __builtin_prefetch(later + c);
        }
        const int length = edges.length_of(other);
        int shared = int(with_self);  // the other one is in its own row then, and in the set in any case
        for (int c = 0; c < length; ++c) shared += set.has(ids[c]);
        weights[j] = float(shared) / float(own + length + 2 * int(with_self) - shared);
    }
    std::fill(weights + own, weights + edges.columns, 0.f);
}

}  // namespace

CsrGraph jaccard_graph(const KnnGraphView& graph, const JaccardParams& params, const Callbacks& callbacks) {
    detail::check_params(params);
    const Team team = team_of(params.threads, &callbacks.interrupt);
    Edges edges = checked_edges("jaccard_graph", graph, params.neighbors, team);
    Array<float> weights(static_cast<std::size_t>(edges.n * edges.k));
    std::vector<Bits> sets(std::size_t(team.threads), Bits(edges.n));
    team.for_chunks(edges.n, 256, [&](int thread, std::int64_t begin, std::int64_t end) {
        Bits& set = sets[std::size_t(thread)];
        for (std::int64_t i = begin; i < end; ++i) {
            const int own = edges.length_of(i);
            const std::int32_t* ids = edges.ids_of(i);
            for (int j = 0; j < own; ++j) set.set(ids[j]);
            if (params.include_self) set.set(std::int32_t(i));
            weigh_row(edges, i, params.include_self, set, weights.data() + i * edges.k);
            for (int j = 0; j < own; ++j) set.clear(ids[j]);
            set.clear(std::int32_t(i));
        }
    });
    edges.values = weights.data();
    edges.low = detail::least_weight(params);
    return join_directions(edges, Nearer<true, true>(), team);
}

}  // namespace gnnd::cpu
