// SPDX-License-Identifier: MIT
#include "operations.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "caller.h"
#include "convert.h"
#include "gnnd/operations.h"
#include "graph_arrays.h"
#include "hooks.h"

namespace gnnd::python {

namespace {

/// An array of numpy that holds what it shows: a gnnd::Array or a std::vector.
template <class T, class Holder>
nb::object to_array(Holder values) {
    const auto [held, owner] = owned(std::move(values));
    return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), {held->size()}, owner));
}

/// (indptr, indices, data).
nb::tuple to_arrays(CsrGraph graph) {
    return nb::make_tuple(to_array<std::int64_t>(std::move(graph.indptr)),
                          to_array<std::int32_t>(std::move(graph.indices)), to_array<float>(std::move(graph.values)));
}

nb::tuple to_tuple(Duplicates found) {
    return nb::make_tuple(to_array<std::int32_t>(std::move(found.labels)),
                          to_array<std::int64_t>(std::move(found.sizes)),
                          to_array<std::int32_t>(std::move(found.firsts)), found.full);
}

/// Calls operation(graph, callbacks) without the GIL.
template <class Operation>
auto run(const nb::tuple& graph, Operation&& operation) {
    const KnnGraphView view = graph_of(graph);
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    return hooks.run([&] { return operation(view, callbacks); });
}

EdgeParams edges(int neighbors, const std::string& values, std::optional<float> radius, int threads) {
    EdgeParams params;
    params.neighbors = neighbors;
    params.values = parse_graph_values(values);
    params.radius = radius;
    params.threads = threads;
    return params;
}

using EdgeOperation = CsrGraph (*)(const KnnGraphView&, const EdgeParams&, const Callbacks&, Resources*);

/// An operation whose only parameters are which entries count.
void bind_edges(nb::module_& module, const char* name, EdgeOperation operation) {
    module.def(
        name,
        [operation](const nb::tuple& graph, int neighbors, const std::string& values, std::optional<float> radius,
                    int threads) {
            const EdgeParams params = edges(neighbors, values, radius, threads);
            return to_arrays(run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return operation(view, params, callbacks, nullptr);
            }));
        },
        nb::arg("graph"), nb::arg("neighbors"), nb::arg("values"), nb::arg("radius").none(), nb::arg("threads"));
}

ReachabilityParams reachability(int neighbors, int min_samples, float alpha, int threads) {
    ReachabilityParams params;
    params.neighbors = neighbors;
    params.min_samples = min_samples;
    params.alpha = alpha;
    params.threads = threads;
    return params;
}

}  // namespace

void bind_operations(nb::module_& module) {
    const auto graph = nb::arg("graph"), neighbors = nb::arg("neighbors"), values = nb::arg("values"),
               threads = nb::arg("threads"), min_samples = nb::arg("min_samples"), alpha = nb::arg("alpha");
    const auto radius = nb::arg("radius").none();

    bind_edges(module, "neighbors_graph", &neighbors_graph);
    bind_edges(module, "symmetric_graph", &symmetric_graph);
    bind_edges(module, "mutual_graph", &mutual_graph);
    module.def(
        "full_rows",
        [](const nb::tuple& graph, int neighbors, const std::string& values, std::optional<float> radius, int threads) {
            const EdgeParams params = edges(neighbors, values, radius, threads);
            return run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return full_rows(view, params, callbacks);
            });
        },
        graph, neighbors, values, radius, threads);
    module.def(
        "jaccard_graph",
        [](const nb::tuple& graph, int neighbors, bool include_self, float prune, int threads) {
            const JaccardParams params{neighbors, include_self, prune, threads};
            return to_arrays(run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return jaccard_graph(view, params, callbacks);
            }));
        },
        graph, neighbors, nb::arg("include_self"), nb::arg("prune"), threads);
    module.def(
        "fuzzy_simplicial_set",
        [](const nb::tuple& graph, int neighbors, float local_connectivity, float set_op_mix_ratio, float bandwidth,
           int threads) {
            const FuzzyParams params{neighbors, local_connectivity, set_op_mix_ratio, bandwidth, threads};
            return to_arrays(run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return fuzzy_simplicial_set(view, params, callbacks);
            }));
        },
        graph, neighbors, nb::arg("local_connectivity"), nb::arg("set_op_mix_ratio"), nb::arg("bandwidth"), threads);
    module.def(
        "core_distances",
        [](const nb::tuple& graph, int neighbors, int min_samples, float alpha, int threads) {
            const ReachabilityParams params = reachability(neighbors, min_samples, alpha, threads);
            return to_array<float>(run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return core_distances(view, params, callbacks);
            }));
        },
        graph, neighbors, min_samples, alpha, threads);
    module.def(
        "mutual_reachability_graph",
        [](const nb::tuple& graph, int neighbors, int min_samples, float alpha, int threads) {
            const ReachabilityParams params = reachability(neighbors, min_samples, alpha, threads);
            return to_arrays(run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return mutual_reachability_graph(view, params, callbacks);
            }));
        },
        graph, neighbors, min_samples, alpha, threads);
    module.def(
        "connected_components",
        [](const nb::tuple& graph, int neighbors, const std::string& values, std::optional<float> radius, int threads) {
            const EdgeParams params = edges(neighbors, values, radius, threads);
            Components found = run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return connected_components(view, params, callbacks);
            });
            return nb::make_tuple(to_array<std::int32_t>(std::move(found.labels)),
                                  to_array<std::int64_t>(std::move(found.sizes)));
        },
        graph, neighbors, values, radius, threads);
    module.def(
        "equal_rows",
        [](const Array& x, int threads) {
            Hooks hooks{nb::none()};
            return to_array<std::int32_t>(
                hooks.run([&] { return equal_rows(x.vectors(), threads, hooks.callbacks()); }));
        },
        nb::arg("x"), threads);
    module.def(
        "duplicates",
        [](const nb::tuple& graph, float threshold, const std::string& values, int neighbors, int threads,
           const Array* equal) {
            const DuplicateParams params{threshold, parse_graph_values(values), neighbors, threads,
                                         equal == nullptr ? nullptr : equal->ids()};
            return to_tuple(run(graph, [&](const KnnGraphView& view, const Callbacks& callbacks) {
                return duplicates(view, params, callbacks);
            }));
        },
        graph, nb::arg("threshold"), values, neighbors, threads, nb::arg("equal").none());
    module.def(
        "duplicates_of",
        [](const Array& x, float threshold, const std::string& values, int neighbors, int threads,
           const nb::dict& given, const Run& how) {
            const DuplicateParams params{threshold, parse_graph_values(values), neighbors, threads};
            const BuildParams of_build = params_of(given);
            Hooks hooks(how.progress);
            CallerResources resources(how);
            return to_tuple(
                hooks.run([&] { return duplicates(x.vectors(), params, of_build, hooks.callbacks(), &resources); }));
        },
        nb::arg("x"), nb::arg("threshold"), values, neighbors, threads, nb::arg("params"), nb::arg("run"));
    module.def(
        "true_distances",
        [](const Array& values, const std::string& metric, const Array& out, int threads) {
            const Metric of = parse_metric(metric);
            const nb::gil_scoped_release released;
            true_distances(of, values.distances(), values.rows * values.columns, out.distances(), threads);
        },
        values, nb::arg("metric"), nb::arg("out"), threads);
}

}  // namespace gnnd::python
