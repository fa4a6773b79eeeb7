// SPDX-License-Identifier: MIT
#include "build.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include "arrays.h"
#include "caller.h"
#include "convert.h"
#include "device_memory.h"
#include "files.h"
#include "gnnd/builder.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/right_distances.h"
#include "gnnd/detail/right_share.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/merge.h"
#include "graph_arrays.h"
#include "hooks.h"
#include "host_memory.h"
#include "values.h"

namespace gnnd::python {

namespace {

/// The identity of vectors, told beside a build: it takes 0.4 ms of some megabytes, a build of them on a GPU not much
/// more.
class Identity {
  public:
    /// \param x  null, or on a GPU: there is none to tell
    explicit Identity(const Array* x) {
        if (x == nullptr || x->device >= 0 || x->rows < 1 || x->columns < 1) return;
        found_ = std::async(std::launch::async, [vectors = x->vectors()] { return io::identify(vectors); });
    }
    /// Waits for it.
    nb::object get() { return found_.valid() ? nb::object(to_tuple(found_.get())) : nb::none(); }

  private:
    std::future<io::BaseIdentity> found_;
};

/// Calls build(ids, distances, callbacks, resources), which fills n x k arrays. Those on a GPU are complete when it
/// returns.
/// \param base  the vectors of the whole graph; null: they lie in two places
/// \return ((ids, distances) on the host or None, statistics, the base's identity or None)
template <class Build>
nb::tuple built(std::int64_t n, std::int64_t k, const Array* base, const Run& how, Build&& build) {
    Identity identity(base);
    Hooks hooks(how.progress);
    CallerResources resources(how);
    const auto run = [&](std::int32_t* ids, float* distances) {
        return build(ids, distances, hooks.callbacks(), &resources);
    };
    if (how.out.is_none()) {
        NewGraph graph(n, k);
        const BuildStats stats = hooks.run([&] { return run(graph.ids(), graph.distances()); });
        return nb::make_tuple(std::move(graph).to_arrays(), to_dict(stats), identity.get());
    }
    const auto& ids = nb::cast<const Array&>(how.out[0]);
    const auto& distances = nb::cast<const Array&>(how.out[1]);
    const BuildStats stats = hooks.run([&] {
        BuildStats of_build = run(ids.ids(), distances.distances());
        if (how.stream != 0) synchronize(ids.device, how.stream);
        return of_build;
    });
    return nb::make_tuple(nb::none(), to_dict(stats), identity.get());
}

nb::tuple exact_rows(const Array& x, const Array& objects, const nb::dict& given) {
    const BuildParams params = params_of(given);
    Hooks hooks{nb::none()};
    const std::int32_t* ids = objects.ids();
    return to_arrays(hooks.run(
        [&] { return exact_neighbors(x.vectors(), ids, objects.rows * objects.columns, params, hooks.callbacks()); }));
}

/// The recall of a graph on a sample of its objects, which is none that its build has drawn; see
/// detail::measure_rows().
nb::object measure(const Array& x, const Array& on_host, const nb::tuple& graph, const nb::dict& given,
                   std::int64_t count) {
    const KnnGraphView view = graph_of(graph);
    const BuildParams params = params_of(given);
    require_vectors(view, x.rows);
    if (params.k > view.k)
        throw InvalidArgument("at = " + std::to_string(params.k) + ", the graph has " + std::to_string(view.k) +
                              " columns");
    const std::vector<std::int32_t> objects = detail::sample_objects(x.rows, count, params.seed, detail::kEvalStream);
    KnnGraph rows(std::int64_t(objects.size()), params.k, view.metric);
    for (std::int64_t i = 0; i < rows.n(); ++i)
        std::copy_n(view.ids_of(objects[i]), params.k, rows.ids() + i * params.k);
    Hooks hooks{nb::none()};
    return to_object(hooks.run([&] {
        return detail::measure_rows(x.vectors(), on_host.vectors(), rows, objects, params, hooks.callbacks());
    }));
}

/// Refuses a graph of the host whose distances are not those of its vectors, as far as it is one of as many.
/// \param of, in  what messages call them
void require_distances(const nb::tuple& parts, const char* of, const Array& x, const char* in) {
    const KnnGraphView graph = graph_of(parts);
    const bool on_host =
        x.device < 0 && nb::cast<const Array&>(parts[0]).device < 0 && nb::cast<const Array&>(parts[1]).device < 0;
    if (on_host && graph.n == x.rows && graph.k > 0 && x.columns > 0)
        detail::check_distances(graph, of, x.vectors(), in);
}

using BuildInto = BuildStats (*)(const VectorView&, const BuildParams&, std::int32_t*, float*, const Callbacks&,
                                 Resources*);

/// Binds a function that makes a graph of vectors alone.
void bind_builder(nb::module_& module, const char* name, BuildInto build) {
    module.def(
        name,
        [build](const Array& x, const nb::dict& given, const Run& how) {
            const BuildParams params = params_of(given);
            return built(x.rows, params.k, &x, how,
                         [&](std::int32_t* ids, float* distances, const Callbacks& callbacks, Resources* resources) {
                             return build(x.vectors(), params, ids, distances, callbacks, resources);
                         });
        },
        nb::arg("x"), nb::arg("params"), nb::arg("run"));
}

}  // namespace

void bind_build(nb::module_& module) {
    const auto x = nb::arg("x"), params = nb::arg("params"), graph = nb::arg("graph"), run = nb::arg("run");

    nb::class_<Run>(module, "Run")
        .def(
            "__init__",
            [](Run* self, nb::object out, int gpu, std::uintptr_t stream, nb::object allocator, nb::object progress) {
                new (self) Run{std::move(out), gpu, stream, std::move(allocator), std::move(progress)};
            },
            nb::arg("out").none(), nb::arg("gpu"), nb::arg("stream"), nb::arg("allocator").none(),
            nb::arg("progress").none());
    bind_builder(module, "build", &build_into);
    bind_builder(module, "build_exact", &build_exact_into);
    module.def(
        "refine",
        [](const Array& x, const nb::tuple& graph, const nb::dict& given, const Run& how) {
            const BuildParams params = params_of(given);
            const KnnGraphView start = graph_of(graph);
            Hooks hooks(how.progress);
            CallerResources resources(how);
            Identity identity(&x);
            BuildResult result =
                hooks.run([&] { return refine(x.vectors(), start, params, hooks.callbacks(), &resources); });
            return nb::make_tuple(to_arrays(std::move(result.graph)), to_dict(result.stats), identity.get());
        },
        x, graph, params, run);
    module.def(
        "merge",
        [](const Array& x1, const nb::tuple& graph1, const Array& x2, const nb::tuple& graph2, const nb::dict& given,
           const Run& how) {
            const BuildParams params = params_of(given);
            const KnnGraphView first = graph_of(graph1), second = graph_of(graph2);
            require_distances(graph1, "graph1", x1, "x1");
            require_distances(graph2, "graph2", x2, "x2");
            return built(x1.rows + x2.rows, params.k, nullptr, how,
                         [&](std::int32_t* ids, float* distances, const Callbacks& callbacks, Resources* resources) {
                             return merge_into(x1.vectors(), first, x2.vectors(), second, params, ids, distances,
                                               callbacks, resources);
                         });
        },
        nb::arg("x1"), nb::arg("graph1"), nb::arg("x2"), nb::arg("graph2"), params, run);
    module.def(
        "append",
        [](const Array& x, const nb::tuple& graph, const Array& added, const nb::dict& given, nb::handle method,
           const Run& how) {
            const BuildParams params = params_of(given);
            const KnnGraphView old = graph_of(graph);
            const AppendMethod way = parse_append_method(value_of<std::string>("method", method));
            require_distances(graph, "graph", x, "x");
            return built(x.rows + added.rows, params.k, nullptr, how,
                         [&](std::int32_t* ids, float* distances, const Callbacks& callbacks, Resources* resources) {
                             return append_into(x.vectors(), old, added.vectors(), params, ids, distances, callbacks,
                                                resources, way);
                         });
        },
        x, graph, nb::arg("added"), params, nb::arg("method").none(), run);
    module.def("exact_rows", &exact_rows, x, nb::arg("objects"), params);
    module.def("measure", &measure, x, nb::arg("on_host"), graph, params, nb::arg("count"));
    module.def(
        "plan",
        [](std::int64_t n, std::int64_t d, const std::string& dtype, const nb::dict& given) {
            return to_dict(plan_memory({nullptr, n, d, parse_dtype(dtype), 0}, params_of(given)));
        },
        nb::arg("n"), nb::arg("d"), nb::arg("dtype"), params);
    module.def(
        "keep_host_memory",
        [](nb::handle bytes) {
            const std::int64_t kept = bytes_of("bytes", bytes);
            detail::check_range("bytes", kept, std::int64_t(0), std::numeric_limits<std::int64_t>::max());
            keep_host_memory(std::size_t(kept));
        },
        nb::arg("bytes").none(),
        "How many bytes of host memory that graphs gave back stay with the process for the next graphs: 256 MiB "
        "until this is\ncalled. What is kept beyond goes back to the system at once; 0: all of it.");
    module.def("kept_host_memory", &kept_host_memory);
    module.def("new_bytes", &new_bytes, nb::arg("count"));
    module.def(
        "recall_at", [](const nb::dict& given) { return detail::recall_at_of(params_of(given)); }, params);
    module.def(
        "unresolved_warning",
        [](double share, const std::string& metric) { return unresolved_warning(share, parse_metric(metric)); },
        nb::arg("share"), nb::arg("metric"));
}

}  // namespace gnnd::python
