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

/// Calls operation(graph, params, callbacks, resources) without the GIL, on the device.
template <class Params, class Operation>
auto run(const nb::tuple& graph, Params params, const std::string& device, const Run& how, Operation&& operation) {
    const KnnGraphView view = graph_of(graph);
    params.device = Device::parse(device);
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    CallerResources resources(how);
    return hooks.run([&] { return operation(view, params, callbacks, &resources); });
}

/// The same for a matrix, as (indptr, indices, data): on the GPU that holds the graph, if it works there, else of
/// numpy.
template <class Params>
nb::tuple matrix(const nb::tuple& graph, Params params, const std::string& device, const Run& how,
                 CsrGraph (*operation)(const KnnGraphView&, const Params&, const Callbacks&, Resources*)) {
    nb::object indptr, indices, data;
    const bool stays = how.gpu >= 0 && Device::parse(device).kind == Device::Kind::cuda;
    if (stays)
        params.room = [&](std::int64_t n, std::int64_t entries) {
            const nb::gil_scoped_acquire gil;
            const auto make = [&](nb::object& array, std::int64_t count, const char* dtype) {
                NewArray made = new_device_array(how.gpu, count, dtype, how.allocator, how.stream);
                array = std::move(made.array);
                return made.pointer;
            };
            return CsrSpan{static_cast<std::int64_t*>(make(indptr, n + 1, "i64")),
                           static_cast<std::int32_t*>(make(indices, entries, "i32")),
                           static_cast<float*>(make(data, entries, "f32"))};
        };
    CsrGraph made = run(graph, params, device, how, operation);
    return stays ? nb::make_tuple(indptr, indices, data) : to_arrays(std::move(made));
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
                    int threads, const std::string& device, const Run& how) {
            return matrix(graph, edges(neighbors, values, radius, threads), device, how, operation);
        },
        nb::arg("graph"), nb::arg("neighbors"), nb::arg("values"), nb::arg("radius").none(), nb::arg("threads"),
        nb::arg("device"), nb::arg("run"));
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
               threads = nb::arg("threads"), min_samples = nb::arg("min_samples"), alpha = nb::arg("alpha"),
               device = nb::arg("device"), how = nb::arg("run");
    const auto radius = nb::arg("radius").none();

    bind_edges(module, "neighbors_graph", &neighbors_graph);
    bind_edges(module, "symmetric_graph", &symmetric_graph);
    bind_edges(module, "mutual_graph", &mutual_graph);
    module.def(
        "full_rows",
        [](const nb::tuple& graph, int neighbors, const std::string& values, std::optional<float> radius, int threads,
           const std::string& device,
           const Run& how) { return run(graph, edges(neighbors, values, radius, threads), device, how, &full_rows); },
        graph, neighbors, values, radius, threads, device, how);
    module.def(
        "jaccard_graph",
        [](const nb::tuple& graph, int neighbors, bool include_self, float prune, int threads,
           const std::string& device, const Run& how) {
            return matrix(graph, JaccardParams{neighbors, include_self, prune, threads}, device, how, &jaccard_graph);
        },
        graph, neighbors, nb::arg("include_self"), nb::arg("prune"), threads, device, how);
    module.def(
        "fuzzy_simplicial_set",
        [](const nb::tuple& graph, int neighbors, float local_connectivity, float set_op_mix_ratio, float bandwidth,
           int threads, const std::string& device, const Run& how) {
            const FuzzyParams params{neighbors, local_connectivity, set_op_mix_ratio, bandwidth, threads};
            return matrix(graph, params, device, how, &fuzzy_simplicial_set);
        },
        graph, neighbors, nb::arg("local_connectivity"), nb::arg("set_op_mix_ratio"), nb::arg("bandwidth"), threads,
        device, how);
    module.def(
        "core_distances",
        [](const nb::tuple& graph, int neighbors, int min_samples, float alpha, int threads, const std::string& device,
           const Run& how) {
            const ReachabilityParams params = reachability(neighbors, min_samples, alpha, threads);
            return to_array<float>(run(graph, params, device, how, &core_distances));
        },
        graph, neighbors, min_samples, alpha, threads, device, how);
    module.def(
        "mutual_reachability_graph",
        [](const nb::tuple& graph, int neighbors, int min_samples, float alpha, int threads, const std::string& device,
           const Run& how) {
            const ReachabilityParams params = reachability(neighbors, min_samples, alpha, threads);
            return matrix(graph, params, device, how, &mutual_reachability_graph);
        },
        graph, neighbors, min_samples, alpha, threads, device, how);
    module.def(
        "connected_components",
        [](const nb::tuple& graph, int neighbors, const std::string& values, std::optional<float> radius, int threads,
           const std::string& device, const Run& how) {
            Components found =
                run(graph, edges(neighbors, values, radius, threads), device, how,
                    [](const KnnGraphView& view, const EdgeParams& params, const Callbacks& callbacks,
                       Resources* resources) { return connected_components(view, params, callbacks, resources); });
            return nb::make_tuple(to_array<std::int32_t>(std::move(found.labels)),
                                  to_array<std::int64_t>(std::move(found.sizes)));
        },
        graph, neighbors, values, radius, threads, device, how);
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
           const Array* equal, const std::string& device, const Run& how) {
            const DuplicateParams params{threshold, parse_graph_values(values), neighbors, threads,
                                         equal == nullptr ? nullptr : equal->ids()};
            return to_tuple(run(graph, params, device, how,
                                [](const KnnGraphView& view, const DuplicateParams& of, const Callbacks& callbacks,
                                   Resources* resources) { return duplicates(view, of, callbacks, resources); }));
        },
        graph, nb::arg("threshold"), values, neighbors, threads, nb::arg("equal").none(), device, how);
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
        nb::arg("x"), nb::arg("threshold"), values, neighbors, threads, nb::arg("params"), how);
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
