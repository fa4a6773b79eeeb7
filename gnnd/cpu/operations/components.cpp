// SPDX-License-Identifier: MIT
// Connected components and groups of copies.
//
// Objects point to objects of lower numbers, at last to the lowest of their component. Joining two components lets the
// higher root point to the lower one by compare-and-swap: nothing waits, and whatever the order, the roots are the
// lowest numbers (Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via subgraph sampling",
// 2018).
#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "gnnd/cpu/operations/edges.h"
#include "gnnd/cpu/operations/operations.h"
#include "gnnd/detail/checks.h"

namespace gnnd::cpu {
namespace {

using Parents = Array<std::int32_t>;

std::int32_t load(std::int32_t& parent) {
    return std::atomic_ref(parent).load(std::memory_order_relaxed);
}

void link(Parents& parents, std::int32_t a, std::int32_t b) {
    std::int32_t x = load(parents[std::size_t(a)]), y = load(parents[std::size_t(b)]);
    while (x != y) {
        const std::int32_t high = std::max(x, y), low = std::min(x, y);
        std::int32_t of_high = load(parents[std::size_t(high)]);
        if (of_high == low) return;
        if (of_high == high && std::atomic_ref(parents[std::size_t(high)])
                                   .compare_exchange_strong(of_high, low, std::memory_order_relaxed))
            return;
        x = load(parents[std::size_t(load(parents[std::size_t(high)]))]);
        y = load(parents[std::size_t(low)]);
    }
}

/// Each row links its object to the others: for_row(i, join) calls join(j) for each of these.
template <class ForRow>
Parents find_roots(std::int64_t n, const Team& team, const ForRow& for_row) {
    Parents parents(static_cast<std::size_t>(n));
    team.for_chunks(n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) parents[std::size_t(i)] = std::int32_t(i);
    });
    team.for_chunks(n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            for_row(i, [&](std::int32_t j) { link(parents, std::int32_t(i), j); });
            // Shortens the way of those that come later.
            std::int32_t root = load(parents[std::size_t(i)]);
            while (root != load(parents[std::size_t(root)])) root = load(parents[std::size_t(root)]);
            std::int32_t seen = load(parents[std::size_t(i)]);
            if (root < seen)
                std::atomic_ref(parents[std::size_t(i)]).compare_exchange_strong(seen, root, std::memory_order_relaxed);
        }
    });
    Parents roots(static_cast<std::size_t>(n));
    team.for_chunks(n, kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::int32_t root = parents[std::size_t(i)];
            while (root != parents[std::size_t(root)]) root = parents[std::size_t(root)];
            roots[std::size_t(i)] = root;
        }
    });
    return roots;
}

template <class Join>
void join_entries(const Edges& edges, std::int64_t i, const Join& join) {
    for (std::int64_t j = 0; j < edges.columns; ++j)
        if (edges.counts(edges.ids_of(i)[j], edges.values_of(i)[j])) join(edges.ids_of(i)[j]);
}

Parents roots_of(const Edges& edges, const Team& team) {
    return find_roots(edges.n, team, [&](std::int64_t i, const auto& join) { join_entries(edges, i, join); });
}

/// Numbers the components of `least` objects or more by their roots, which are their first objects.
struct Numbered {
    Array<std::int32_t> labels;
    std::vector<std::int64_t> sizes;
    std::vector<std::int32_t> firsts;

    Numbered(const Parents& roots, std::int32_t least) : labels(roots.size()) {
        std::vector<std::int32_t> counts(roots.size());
        for (const std::int32_t root : roots) ++counts[std::size_t(root)];
        // The root comes first of its component: its number is known when the others are reached.
        for (std::size_t i = 0; i < roots.size(); ++i) {
            const auto root = std::size_t(roots[i]);
            if (root != i) {
                labels[i] = labels[root];
                continue;
            }
            labels[i] = -1;
            if (counts[i] < least) continue;
            labels[i] = std::int32_t(sizes.size());
            sizes.push_back(counts[i]);
            firsts.push_back(std::int32_t(i));
        }
    }
};

}  // namespace

Components connected_components(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks) {
    const Team team = team_of(params.threads, &callbacks.interrupt);
    const OwnedEdges own = edges_of("connected_components", graph, params, team);
    Numbered numbered(roots_of(own.edges, team), 1);
    return {std::move(numbered.labels), std::move(numbered.sizes)};
}

namespace {

/// The cut of a graph by the threshold.
struct Copies {
    OwnedEdges own;
    bool equal_rows_count;  ///< whether the threshold lets a pair of equal vectors through

    Copies(const KnnGraphView& graph, const DuplicateParams& params, const Team& team)
        : own(edges_of("duplicates", graph, {params.neighbors, params.values, params.threshold, params.threads},
                       team)) {
        equal_rows_count = detail::equal_rows_count(own.edges, graph.metric);
    }
};

Duplicates of_roots(const Parents& roots) {
    Numbered numbered(roots, 2);
    return {std::move(numbered.labels), std::move(numbered.sizes), std::move(numbered.firsts)};
}

/// The first of equal rows, ascending, and which of these each row is.
struct Distinct {
    std::vector<std::int32_t> firsts;
    Array<std::int32_t> number_of;

    explicit Distinct(const Array<std::int32_t>& equal) : number_of(equal.size()) {
        for (std::size_t i = 0; i < equal.size(); ++i) {
            if (equal[i] == std::int32_t(i)) firsts.push_back(std::int32_t(i));
            number_of[i] =
                equal[i] == std::int32_t(i) ? std::int32_t(firsts.size()) - 1 : number_of[std::size_t(equal[i])];
        }
    }
};

/// Those rows one after the other.
Array<std::byte> gathered(const VectorView& vectors, const std::vector<std::int32_t>& rows, const Team& team) {
    const std::size_t bytes = std::size_t(vectors.d) * size_of(vectors.dtype);
    Array<std::byte> gathered(rows.size() * bytes);
    team.for_chunks(std::ssize(rows), kRowsAtOnce, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            std::copy_n(vectors.row(rows[std::size_t(i)]), bytes, gathered.data() + std::size_t(i) * bytes);
    });
    return gathered;
}

}  // namespace

Duplicates duplicates(const KnnGraphView& graph, const DuplicateParams& params, const Callbacks& callbacks) {
    detail::check_threshold(params);
    const Team team = team_of(params.threads, &callbacks.interrupt);
    const Copies copies(graph, params, team);
    const Edges& edges = copies.own.edges;
    if (params.equal != nullptr) detail::check_ids(params.equal, graph.n, 0, graph.n, "DuplicateParams::equal");
    const bool equal = params.equal != nullptr && copies.equal_rows_count;
    Duplicates found = of_roots(find_roots(edges.n, team, [&](std::int64_t i, const auto& join) {
        join_entries(edges, i, join);
        if (equal) join(params.equal[i]);
    }));
    found.full = count_full(edges, team);
    return found;
}

}  // namespace gnnd::cpu

namespace gnnd {

Components connected_components(const CsrGraph& graph, int threads, const Callbacks& callbacks) {
    const cpu::Team team = cpu::team_of(threads, &callbacks.interrupt);
    const std::int64_t n = graph.n;
    const auto refuse = [](const std::string& what) { throw InvalidArgument("connected_components: " + what); };
    if (n < 0 || n > kMaxObjects || std::int64_t(graph.indptr.size()) != n + 1)
        refuse(std::to_string(graph.indptr.size()) + " offsets of " + std::to_string(n) + " rows");
    const auto entries = std::int64_t(graph.indices.size());
    if (graph.indptr[0] != 0 || graph.indptr[std::size_t(n)] != entries)
        refuse("offsets from " + std::to_string(graph.indptr[0]) + " to " +
               std::to_string(graph.indptr[std::size_t(n)]) + " of " + std::to_string(entries) + " columns");
    for (std::int64_t i = 0; i < n; ++i)
        if (graph.indptr[std::size_t(i)] > graph.indptr[std::size_t(i) + 1])
            refuse("the offsets of row " + std::to_string(i) + " do not ascend");
    const cpu::Parents roots = cpu::find_roots(n, team, [&](std::int64_t i, const auto& join) {
        for (std::int64_t e = graph.indptr[std::size_t(i)]; e < graph.indptr[std::size_t(i) + 1]; ++e) {
            const std::int32_t j = graph.indices[std::size_t(e)];
            if (j < 0 || j >= n)
                refuse("row " + std::to_string(i) + ": column " + std::to_string(j) + " is outside of [0, " +
                       std::to_string(n) + ")");
            join(j);
        }
    });
    cpu::Numbered numbered(roots, 1);
    return {std::move(numbered.labels), std::move(numbered.sizes)};
}

Duplicates duplicates(const VectorView& vectors, const DuplicateParams& params, const BuildParams& build_params,
                      const Callbacks& callbacks, Resources* resources) {
    detail::check_threshold(params);
    const cpu::Team team = cpu::team_of(params.threads, &callbacks.interrupt);
    const cpu::Distinct distinct(equal_rows(vectors, params.threads, callbacks));
    const std::int64_t rows = std::ssize(distinct.firsts);
    KnnGraph graph(rows, 1, build_params.metric);
    if (rows > 1) {
        BuildParams of_rows = build_params;
        of_rows.k = int(std::min<std::int64_t>(build_params.k, rows - 1));
        Array<std::byte> gathered_rows;
        VectorView view = vectors;
        if (rows < vectors.n) {
            gathered_rows = cpu::gathered(vectors, distinct.firsts, team);
            view = {gathered_rows.data(), rows, vectors.d, vectors.dtype, 0};
        }
        graph = build(view, of_rows, callbacks, resources).graph;
    }
    const cpu::Copies copies(graph, params, team);
    const cpu::Parents of_distinct = cpu::roots_of(copies.own.edges, team);
    cpu::Parents roots(distinct.number_of.size());
    std::vector<std::int64_t> of_kind(distinct.firsts.size());
    for (std::size_t i = 0; i < roots.size(); ++i) {
        const auto number = std::size_t(distinct.number_of[i]);
        ++of_kind[number];
        roots[i] = distinct.firsts[std::size_t(of_distinct[number])];
    }
    if (!copies.equal_rows_count) std::iota(roots.begin(), roots.end(), 0);  // then no pair counts
    Duplicates found = cpu::of_roots(roots);
    found.full = count_full(copies.own.edges, team, of_kind);
    return found;
}

}  // namespace gnnd
