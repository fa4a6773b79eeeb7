// SPDX-License-Identifier: MIT
#include "build.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "arrays.h"
#include "convert.h"
#include "device_memory.h"
#include "gnnd/builder.h"
#include "gnnd/detail/recall.h"
#include "gnnd/merge.h"
#include "graph_arrays.h"
#include "hooks.h"

namespace gnnd::python {

namespace {

/// Work on the caller's stream.
class OnStream final : public Resources {
  public:
    /// \param stream  0: a build's own
    explicit OnStream(std::uintptr_t stream) : stream_(reinterpret_cast<Stream>(stream)) {}
    void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
    void deallocate(void* pointer, std::size_t bytes) noexcept override { heap_.deallocate(pointer, bytes); }
    Stream stream() override { return stream_; }

  private:
    HeapResources heap_;
    Stream stream_;
};

/// Calls build(callbacks, resources), which returns a graph and its statistics.
template <class Build>
nb::tuple built(nb::object progress, std::uintptr_t stream, Build&& build) {
    Hooks hooks(std::move(progress));
    OnStream resources(stream);
    BuildResult result = hooks.run([&] { return build(hooks.callbacks(), &resources); });
    return nb::make_tuple(to_arrays(std::move(result.graph)), to_dict(result.stats));
}

/// The same where the graph goes to arrays on a GPU, which are complete when the call returns.
template <class Build>
nb::dict built_into(const Array& ids, const Array& distances, nb::object progress, std::uintptr_t stream,
                    Build&& build) {
    Hooks hooks(std::move(progress));
    OnStream resources(stream);
    const BuildStats stats = hooks.run([&] {
        BuildStats of_build = build(ids.ids(), distances.distances(), hooks.callbacks(), &resources);
        if (ids.device >= 0 && stream != 0) synchronize(ids.device, stream);
        return of_build;
    });
    return to_dict(stats);
}

nb::tuple exact_rows(const Array& x, const Array& objects, const nb::dict& given) {
    const BuildParams params = params_of(given);
    Hooks hooks{nb::none()};
    const std::int32_t* ids = objects.ids();
    return to_arrays(hooks.run(
        [&] { return exact_neighbors(x.vectors(), ids, objects.rows * objects.columns, params, hooks.callbacks()); }));
}

/// The recall of a graph on a sample of its objects.
nb::object measure(const Array& x, const nb::tuple& graph, const nb::dict& given, std::int64_t count,
                   std::uint64_t seed) {
    const KnnGraphView view = graph_of(graph);
    BuildParams params = params_of(given);
    if (view.n != x.rows)
        throw InvalidArgument("a graph of " + std::to_string(view.n) + " objects for " + std::to_string(x.rows) +
                              " vectors");
    if (params.k > view.k)
        throw InvalidArgument("at = " + std::to_string(params.k) + ", the graph has " + std::to_string(view.k) +
                              " columns");
    params.k = int(std::min<std::int64_t>(params.k, x.rows - 1));
    const std::vector<std::int32_t> objects = detail::sample_objects(x.rows, count, seed);
    Hooks hooks{nb::none()};
    const KnnGraph truth = hooks.run([&] {
        return exact_neighbors(x.vectors(), objects.data(), std::int64_t(objects.size()), params, hooks.callbacks());
    });
    KnnGraph rows(truth.n(), params.k, view.metric);
    for (std::int64_t i = 0; i < truth.n(); ++i) {
        std::copy_n(view.ids_of(objects[i]), params.k, rows.ids() + i * params.k);
        std::copy_n(view.distances_of(objects[i]), params.k, rows.distances() + i * params.k);
    }
    return to_object(detail::estimate_recall(x.rows, rows.view(), truth.view()));
}

using Build = BuildResult (*)(const VectorView&, const BuildParams&, const Callbacks&, Resources*);
using BuildInto = BuildStats (*)(const VectorView&, const BuildParams&, std::int32_t*, float*, const Callbacks&,
                                 Resources*);

/// What makes a graph of vectors alone: NAME returns it, NAME_into fills arrays on a GPU.
void bind_builder(nb::module_& module, const std::string& name, Build build, BuildInto build_into) {
    module.def(
        name.c_str(),
        [build](const Array& x, const nb::dict& given, std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            return built(std::move(progress), stream, [&](const Callbacks& callbacks, Resources* resources) {
                return build(x.vectors(), params, callbacks, resources);
            });
        },
        nb::arg("x"), nb::arg("params"), nb::arg("stream"), nb::arg("progress").none());
    module.def(
        (name + "_into").c_str(),
        [build_into](const Array& x, const nb::dict& given, const Array& ids, const Array& distances,
                     std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            return built_into(
                ids, distances, std::move(progress), stream,
                [&](std::int32_t* to_ids, float* to_distances, const Callbacks& callbacks, Resources* resources) {
                    return build_into(x.vectors(), params, to_ids, to_distances, callbacks, resources);
                });
        },
        nb::arg("x"), nb::arg("params"), nb::arg("ids"), nb::arg("distances"), nb::arg("stream"),
        nb::arg("progress").none());
}

}  // namespace

void bind_build(nb::module_& module) {
    const auto x = nb::arg("x"), params = nb::arg("params"), ids = nb::arg("ids"), distances = nb::arg("distances"),
               graph = nb::arg("graph"), stream = nb::arg("stream"), method = nb::arg("method");
    const auto progress = nb::arg("progress").none();

    bind_builder(module, "build", &build, &build_into);
    bind_builder(module, "build_exact", &build_exact, &build_exact_into);
    module.def(
        "refine",
        [](const Array& x, const nb::tuple& graph, const nb::dict& given, std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            const KnnGraphView start = graph_of(graph);
            return built(std::move(progress), stream, [&](const Callbacks& callbacks, Resources* resources) {
                return refine(x.vectors(), start, params, callbacks, resources);
            });
        },
        x, graph, params, stream, progress);
    module.def(
        "merge",
        [](const Array& x1, const nb::tuple& graph1, const Array& x2, const nb::tuple& graph2, const nb::dict& given,
           std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            const KnnGraphView first = graph_of(graph1), second = graph_of(graph2);
            return built(std::move(progress), stream, [&](const Callbacks& callbacks, Resources* resources) {
                return merge(x1.vectors(), first, x2.vectors(), second, params, callbacks, resources);
            });
        },
        nb::arg("x1"), nb::arg("graph1"), nb::arg("x2"), nb::arg("graph2"), params, stream, progress);
    module.def(
        "merge_into",
        [](const Array& x1, const nb::tuple& graph1, const Array& x2, const nb::tuple& graph2, const nb::dict& given,
           const Array& ids, const Array& distances, std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            const KnnGraphView first = graph_of(graph1), second = graph_of(graph2);
            return built_into(
                ids, distances, std::move(progress), stream,
                [&](std::int32_t* to_ids, float* to_distances, const Callbacks& callbacks, Resources* resources) {
                    return merge_into(x1.vectors(), first, x2.vectors(), second, params, to_ids, to_distances,
                                      callbacks, resources);
                });
        },
        nb::arg("x1"), nb::arg("graph1"), nb::arg("x2"), nb::arg("graph2"), params, ids, distances, stream, progress);
    module.def(
        "append",
        [](const Array& x, const nb::tuple& graph, const Array& added, const nb::dict& given, const std::string& method,
           std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            const KnnGraphView old = graph_of(graph);
            const AppendMethod way = parse_append_method(method);
            return built(std::move(progress), stream, [&](const Callbacks& callbacks, Resources* resources) {
                return append(x.vectors(), old, added.vectors(), params, callbacks, resources, way);
            });
        },
        x, graph, nb::arg("added"), params, method, stream, progress);
    module.def(
        "append_into",
        [](const Array& x, const nb::tuple& graph, const Array& added, const nb::dict& given, const std::string& method,
           const Array& ids, const Array& distances, std::uintptr_t stream, nb::object progress) {
            const BuildParams params = params_of(given);
            const KnnGraphView old = graph_of(graph);
            const AppendMethod way = parse_append_method(method);
            return built_into(
                ids, distances, std::move(progress), stream,
                [&](std::int32_t* to_ids, float* to_distances, const Callbacks& callbacks, Resources* resources) {
                    return append_into(x.vectors(), old, added.vectors(), params, to_ids, to_distances, callbacks,
                                       resources, way);
                });
        },
        x, graph, nb::arg("added"), params, method, ids, distances, stream, progress);
    module.def("exact_rows", &exact_rows, x, nb::arg("objects"), params);
    module.def("measure", &measure, x, graph, params, nb::arg("count"), nb::arg("seed"));
    module.def(
        "plan",
        [](std::int64_t n, std::int64_t d, const std::string& dtype, const nb::dict& given) {
            return to_dict(plan_memory({nullptr, n, d, parse_dtype(dtype), 0}, params_of(given)));
        },
        nb::arg("n"), nb::arg("d"), nb::arg("dtype"), params);
}

}  // namespace gnnd::python
