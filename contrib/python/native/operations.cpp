// SPDX-License-Identifier: MIT
#include "operations.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "caller.h"
#include "convert.h"
#include "gil.h"
#include "gnnd/operations.h"
#include "graph_arrays.h"
#include "hooks.h"
#include "values.h"

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
            const GilTaken gil;
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

EdgeParams edges(const nb::dict& given) {
    const Arguments arguments(given);
    EdgeParams params;
    params.neighbors = arguments.get<int>("neighbors");
    params.values = parse_graph_values(arguments.get<std::string>("values"));
    if (!arguments.is_none("radius")) params.radius = arguments.get<float>("radius");
    params.threads = arguments.get<int>("threads");
    return params;
}

JaccardParams jaccard(const nb::dict& given) {
    const Arguments arguments(given);
    return {arguments.get<int>("neighbors"), arguments.get<bool>("include_self"), arguments.get<float>("prune"),
            arguments.get<int>("threads")};
}

FuzzyParams fuzzy(const nb::dict& given) {
    const Arguments arguments(given);
    return {arguments.get<int>("neighbors"), arguments.get<float>("local_connectivity"),
            arguments.get<float>("set_op_mix_ratio"), arguments.get<float>("bandwidth"), arguments.get<int>("threads")};
}

ReachabilityParams reachability(const nb::dict& given) {
    const Arguments arguments(given);
    ReachabilityParams params;
    params.neighbors = arguments.get<int>("neighbors");
    params.min_samples = arguments.get<int>("min_samples");
    params.alpha = arguments.get<float>("alpha");
    params.threads = arguments.get<int>("threads");
    return params;
}

DuplicateParams duplication(const nb::dict& given, const Array* equal = nullptr) {
    const Arguments arguments(given);
    return {arguments.get<float>("threshold"), parse_graph_values(arguments.get<std::string>("values")),
            arguments.get<int>("neighbors"), arguments.get<int>("threads"), equal == nullptr ? nullptr : equal->ids()};
}

/// An operation that makes a matrix.
template <class Params>
void bind_matrix(nb::module_& module, const char* name, Params (*params_of)(const nb::dict&),
                 CsrGraph (*operation)(const KnnGraphView&, const Params&, const Callbacks&, Resources*)) {
    module.def(
        name,
        [=](const nb::tuple& graph, const nb::dict& given, const std::string& device, const Run& how) {
            return matrix(graph, params_of(given), device, how, operation);
        },
        nb::arg("graph"), nb::arg("params"), nb::arg("device"), nb::arg("run"));
}

}  // namespace

void bind_operations(nb::module_& module) {
    const auto graph = nb::arg("graph"), values = nb::arg("values"), params = nb::arg("params"),
               device = nb::arg("device"), how = nb::arg("run");
    const auto threads = nb::arg("threads").none();

    bind_matrix(module, "neighbors_graph", &edges, &neighbors_graph);
    bind_matrix(module, "symmetric_graph", &edges, &symmetric_graph);
    bind_matrix(module, "mutual_graph", &edges, &mutual_graph);
    bind_matrix(module, "jaccard_graph", &jaccard, &jaccard_graph);
    bind_matrix(module, "fuzzy_simplicial_set", &fuzzy, &fuzzy_simplicial_set);
    bind_matrix(module, "mutual_reachability_graph", &reachability, &mutual_reachability_graph);
    module.def(
        "full_rows",
        [](const nb::tuple& graph, const nb::dict& given, const std::string& device, const Run& how) {
            return run(graph, edges(given), device, how, &full_rows);
        },
        graph, params, device, how);
    module.def(
        "core_distances",
        [](const nb::tuple& graph, const nb::dict& given, const std::string& device, const Run& how) {
            return to_array<float>(run(graph, reachability(given), device, how, &core_distances));
        },
        graph, params, device, how);
    module.def(
        "connected_components",
        [](const nb::tuple& graph, const nb::dict& given, const std::string& device, const Run& how) {
            Components found =
                run(graph, edges(given), device, how,
                    [](const KnnGraphView& view, const EdgeParams& params, const Callbacks& callbacks,
                       Resources* resources) { return connected_components(view, params, callbacks, resources); });
            return nb::make_tuple(to_array<std::int32_t>(std::move(found.labels)),
                                  to_array<std::int64_t>(std::move(found.sizes)));
        },
        graph, params, device, how);
    module.def(
        "equal_rows",
        [](const Array& x, nb::handle given) {
            const int threads = value_of<int>("threads", given);
            Hooks hooks{nb::none()};
            return to_array<std::int32_t>(
                hooks.run([&] { return equal_rows(x.vectors(), threads, hooks.callbacks()); }));
        },
        nb::arg("x"), threads);
    module.def(
        "duplicates",
        [](const nb::tuple& graph, const nb::dict& given, const Array* equal, const std::string& device,
           const Run& how) {
            return to_tuple(run(graph, duplication(given, equal), device, how,
                                [](const KnnGraphView& view, const DuplicateParams& of, const Callbacks& callbacks,
                                   Resources* resources) { return duplicates(view, of, callbacks, resources); }));
        },
        graph, params, nb::arg("equal").none(), device, how);
    module.def(
        "duplicates_of",
        [](const Array& x, const nb::dict& given, const nb::dict& build, const Run& how) {
            const DuplicateParams params = duplication(given);
            const BuildParams of_build = params_of(build);
            Hooks hooks(how.progress);
            CallerResources resources(how);
            return to_tuple(
                hooks.run([&] { return duplicates(x.vectors(), params, of_build, hooks.callbacks(), &resources); }));
        },
        nb::arg("x"), params, nb::arg("build"), how);
    module.def(
        "true_distances",
        [](const Array& values, const std::string& metric, const Array& out, nb::handle given) {
            const Metric of = parse_metric(metric);
            const int threads = value_of<int>("threads", given);
            const GilReleased released;
            true_distances(of, values.distances(), values.rows * values.columns, out.distances(), threads);
        },
        values, nb::arg("metric"), nb::arg("out"), threads);
}

}  // namespace gnnd::python
