// SPDX-License-Identifier: MIT
#include "gnnd/merge.h"

#include <algorithm>
#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/input.h"
#include "gnnd/detail/run.h"
#include "gnnd/device.h"
#include "gnnd/error.h"
#include "gnnd/names.h"

namespace gnnd {
namespace {

/// The words of messages for what is merged.
struct Names {
    const char *call, *first, *second;
};
constexpr Names kMerge{"merge", "the first", "the second"};
constexpr Names kAppend{"append", "the old", "the added"};

[[noreturn]] void refuse(const Names& names, const std::string& what) {
    throw InvalidArgument(std::string(names.call) + ": " + what);
}

void check_graph(const Names& names, const char* which, const VectorView& vectors, const KnnGraphView& graph,
                 const BuildParams& params) {
    const auto refuse_graph = [&](const std::string& what) { refuse(names, std::string(which) + " graph" + what); };
    if (graph.n != vectors.n)
        refuse_graph(" has " + std::to_string(graph.n) + " objects, its vectors are " + std::to_string(vectors.n));
    if (vectors.n == 0) return;
    if (graph.metric != params.metric)
        refuse_graph(" was made under " + std::string(name_of(graph.metric)) + ", asked for is " +
                     std::string(name_of(params.metric)));
    if (graph.ids == nullptr || graph.distances == nullptr) refuse_graph("'s arrays are null pointers");
    if (device_of(graph.ids) != device_of(graph.distances))
        refuse_graph("'s ids and distances lie in different memories");
    detail::check_k(graph.k);
}

void check_vectors(const Names& names, const VectorView& x1, const VectorView& x2) {
    if (x1.n == 0 && x2.n == 0) refuse(names, "both sets are empty");
    for (const VectorView* set : {&x1, &x2}) {
        if (set->n < 0)
            refuse(names,
                   std::string(set == &x1 ? names.first : names.second) + " vectors: n = " + std::to_string(set->n));
        if (set->n != 0) detail::check_shape(*set, 1);
    }
    if (x1.n != 0 && x2.n != 0 && (x1.d != x2.d || x1.dtype != x2.dtype))
        refuse(names, "vectors of " + std::to_string(x1.d) + " " + std::string(name_of(x1.dtype)) + " and of " +
                          std::to_string(x2.d) + " " + std::string(name_of(x2.dtype)));
}

/// The input that runs: both sets, or the only one that has objects, whose graph needs no work unless columns are
/// missing.
struct Merge {
    Merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
          const BuildParams& given)
        : params(given) {
        params.validate();
        check_vectors(kMerge, x1, x2);
        check_graph(kMerge, kMerge.first, x1, g1, params);
        check_graph(kMerge, kMerge.second, x2, g2, params);
        if (x1.n != 0 && x2.n != 0) {
            input = {{x1, x2}, {g1, g2}};
            return;
        }
        input = x1.n != 0 ? detail::Input{{x1}, {g1}} : detail::Input{{x2}, {g2}};
        if (params.k <= input.graphs[0].k) params.iterations = 0;
    }
    detail::Input input;
    BuildParams params;
};

constexpr std::string_view spell(AppendMethod value) {
    switch (value) {
        case AppendMethod::automatic:
            return "auto";
        case AppendMethod::merge:
            return "merge";
        case AppendMethod::search:
            return "search";
    }
    return {};
}

constexpr auto kMethodNames = name_table<AppendMethod, spell>("append method");

/// An append(), whose arguments are checked before anything is built.
struct Append {
    Append(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
           AppendMethod method, std::int64_t unmeasured)
        : x(x), g(g), added(added), params(params), method(method), unmeasured(unmeasured) {
        params.validate();
        name_of(method);
        check_vectors(kAppend, x, added);
        check_graph(kAppend, kAppend.first, x, g, params);
        const std::int64_t most = std::max<std::int64_t>(x.n - 1, 0);
        if (unmeasured < 0 || unmeasured > most)
            refuse(kAppend,
                   "unmeasured is " + std::to_string(unmeasured) + ", allowed are 0 to " + std::to_string(most));
    }

    bool searches() const {
        if (x.n == 0 || added.n == 0) return false;
        if (method != AppendMethod::automatic) return method == AppendMethod::search;
        return double(added.n) <= kSearchedShare * double(x.n) && params.k <= g.k;
    }
    detail::Input search_input() const {
        return {.vectors = {x, added}, .graphs = {g}, .inserts = true, .unmeasured = unmeasured};
    }

    BuildResult build_added(const Callbacks& callbacks, Resources* resources) const {
        BuildResult result;
        if (added.n < 2) {
            result.graph = KnnGraph(added.n, params.k, params.metric);
            return result;
        }
        try {
            return build(added, params, callbacks, resources);
        } catch (const InvalidArgument& error) {  // which may name a row
            refuse(kAppend, std::string("of the added vectors: ") + error.what());
        }
    }
    /// Adds what build_added() took to what the merge did.
    void count(const BuildStats& of_added, BuildStats& stats) const {
        stats.seconds += of_added.seconds;
        const auto graph_bytes = added.n * params.k * std::int64_t(sizeof(std::int32_t) + sizeof(float));
        stats.peak_work_bytes = graph_bytes + std::max(stats.peak_work_bytes, of_added.peak_work_bytes);
    }

    const VectorView& x;
    const KnnGraphView& g;
    const VectorView& added;
    const BuildParams& params;
    AppendMethod method;
    std::int64_t unmeasured;
};

}  // namespace

BuildResult merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                  const BuildParams& params, const Callbacks& callbacks, Resources* resources) {
    const Merge merge(x1, g1, x2, g2, params);
    return detail::run(merge.input, merge.params, callbacks, resources);
}

BuildStats merge_into(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                      const BuildParams& params, std::int32_t* ids, float* distances, const Callbacks& callbacks,
                      Resources* resources) {
    const Merge merge(x1, g1, x2, g2, params);
    return detail::run_into("merge_into", merge.input, merge.params, ids, distances, callbacks, resources);
}

std::string_view name_of(AppendMethod method) {
    return kMethodNames.name_of(method);
}
AppendMethod parse_append_method(std::string_view name) {
    return kMethodNames.parse(name);
}

BuildResult append(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
                   const Callbacks& callbacks, Resources* resources, AppendMethod method, std::int64_t unmeasured) {
    const Append append(x, g, added, params, method, unmeasured);
    if (append.searches()) return detail::run(append.search_input(), params, callbacks, resources);
    const BuildResult second = append.build_added(callbacks, resources);
    BuildResult result = merge(x, g, added, second.graph, params, callbacks, resources);
    append.count(second.stats, result.stats);
    return result;
}

BuildStats append_into(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
                       std::int32_t* ids, float* distances, const Callbacks& callbacks, Resources* resources,
                       AppendMethod method, std::int64_t unmeasured) {
    const Append append(x, g, added, params, method, unmeasured);
    if (append.searches())
        return detail::run_into("append_into", append.search_input(), params, ids, distances, callbacks, resources);
    const BuildResult second = append.build_added(callbacks, resources);
    BuildStats stats = merge_into(x, g, added, second.graph, params, ids, distances, callbacks, resources);
    append.count(second.stats, stats);
    return stats;
}

int merge_columns(const BuildParams& params) {
    KnnGraphView graph;
    graph.k = params.k;
    return int(detail::kept_columns(graph, params));
}

}  // namespace gnnd
