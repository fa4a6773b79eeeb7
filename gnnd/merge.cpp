#include "gnnd/merge.h"

#include <algorithm>
#include <string>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/input.h"
#include "gnnd/detail/run.h"
#include "gnnd/device.h"
#include "gnnd/error.h"

namespace gnnd {
namespace {

/// How messages call what is merged.
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

/// What runs: both sets, or the only one that has objects, whose graph needs no work unless columns are missing.
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

BuildResult append(const VectorView& x, const KnnGraphView& g, const VectorView& added, const BuildParams& params,
                   const Callbacks& callbacks, Resources* resources) {
    // What merge() would refuse is refused before the added vectors' graph is built.
    params.validate();
    check_vectors(kAppend, x, added);
    check_graph(kAppend, kAppend.first, x, g, params);
    BuildResult second;
    if (added.n < 2) {
        second.graph = KnnGraph(added.n, params.k, params.metric);
    } else {
        try {
            second = build(added, params, callbacks, resources);
        } catch (const InvalidArgument& error) {  // which may name a row
            refuse(kAppend, std::string("of the added vectors: ") + error.what());
        }
    }
    BuildResult result = merge(x, g, added, second.graph, params, callbacks, resources);
    result.stats.seconds += second.stats.seconds;
    const auto graph_bytes = added.n * params.k * std::int64_t(sizeof(std::int32_t) + sizeof(float));
    result.stats.peak_work_bytes = graph_bytes + std::max(result.stats.peak_work_bytes, second.stats.peak_work_bytes);
    return result;
}

int merge_columns(const BuildParams& params) {
    KnnGraphView graph;
    graph.k = params.k;
    return int(detail::kept_columns(graph, params));
}

}  // namespace gnnd
