// SPDX-License-Identifier: MIT
#include "files.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "convert.h"
#include "gil.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/detail/digits.h"
#include "gnnd/io/detail/moved.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/io/vector_reader.h"
#include "gnnd/sharded.h"
#include "graph_arrays.h"
#include "hooks.h"
#include "values.h"

namespace gnnd::python {

nb::tuple to_tuple(const io::BaseIdentity& base) {
    return nb::make_tuple(base.n, base.d, std::string(name_of(base.dtype)), base.checksum);
}

RecallEstimate recall_of(const nb::object& given) {
    RecallEstimate recall;
    if (given.is_none()) return recall;
    recall.value = nb::cast<double>(given["recall"]);
    recall.low = nb::cast<double>(given["recall_low"]);
    recall.high = nb::cast<double>(given["recall_high"]);
    recall.at = nb::cast<int>(given["recall_at"]);
    recall.objects = nb::cast<std::int64_t>(given["recall_objects"]);
    return recall;
}

namespace {

using Path = std::filesystem::path;  // Python gives its bytes, which need be no text

io::BaseIdentity identity_of(const nb::tuple& parts) {
    io::BaseIdentity base;
    base.n = nb::cast<std::int64_t>(parts[0]);
    base.d = nb::cast<std::int64_t>(parts[1]);
    base.dtype = parse_dtype(nb::cast<std::string>(parts[2]));
    base.checksum = nb::cast<std::uint64_t>(parts[3]);
    return base;
}

/// Returns what a graph keeps of itself, of a file or of a folder.
nb::dict about(Metric metric, DType dtype, const std::optional<io::BaseIdentity>& base, const RecallEstimate& recall) {
    nb::dict dict;
    dict["metric"] = std::string(name_of(metric));
    dict["dtype"] = std::string(name_of(dtype));
    dict["base"] = base ? nb::object(to_tuple(*base)) : nb::none();
    dict["recall"] = to_object(recall);
    return dict;
}

/// \param base    the identity of the vectors; None: it is not known, and `dtype` is what remains of it
/// \param recall  as measure() gives it, or None
void save(const Path& path, const nb::tuple& graph, const std::string& dtype, const nb::object& base,
          const nb::object& recall) {
    const KnnGraphView view =
        graph_of(nb::cast<const Array&>(graph[0]), nb::cast<const Array&>(graph[1]), nb::cast<std::string>(graph[2]));
    const DType of_vectors = parse_dtype(dtype);
    if (base.is_none()) {
        const GilReleased released;
        return io::write_graph(path.native(), view, of_vectors);
    }
    const io::BaseIdentity identity = identity_of(nb::cast<nb::tuple>(base));
    require_vectors(view, identity.n);
    const RecallEstimate measured = recall_of(recall);
    const GilReleased released;
    io::write_graph(path.native(), view, identity, measured);
}

nb::tuple load(const Path& path) {
    const io::GraphFile file(path.native());
    if (file.objects() != file.n())
        throw InvalidArgument(path.native() + ": the rows of " + std::to_string(file.n()) + " of " +
                              std::to_string(file.objects()) + " objects, no whole graph");
    KnnGraph graph;
    {
        const GilReleased released;
        graph = file.read();
    }
    return nb::make_tuple(to_arrays(std::move(graph)), about(file.metric(), file.dtype(), file.base(), file.recall()));
}

ShardParams shard_params_of(const nb::dict& given) {
    const Arguments arguments(given);
    ShardParams params;
    params.work = path_of(given["work"]);
    params.shards = arguments.get<int>("shards");
    params.plan = parse_merge_plan(arguments.get<std::string>("plan"));
    params.resume = arguments.get<bool>("resume");
    params.host_memory = bytes_of("host_memory", given["host_memory"]);
    params.checkpoint_seconds = arguments.get<double>("checkpoint_seconds");
    params.id_bytes = arguments.get<int>("id_bytes");
    params.workers = arguments.get<int>("workers");
    for (const auto& device : nb::cast<std::vector<std::string>>(given["devices"]))
        params.devices.push_back(Device::parse(device));
    return params;
}

nb::dict build_shards(const io::VectorReader& base, const nb::dict& given, const nb::dict& shards,
                      nb::object progress) {
    const BuildParams params = params_of(given);
    const ShardParams shard_params = shard_params_of(shards);
    Hooks hooks(std::move(progress));
    return to_dict(hooks.run([&] { return build_sharded(base, params, shard_params, hooks.shard_callbacks()); }));
}

/// Rows [begin, begin + count): (ids as int64, distances), into the caller's arrays.
void read_rows(const ShardedGraph& graph, std::int64_t begin, std::int64_t count, std::uintptr_t ids,
               std::uintptr_t distances) {
    const GilReleased released;
    graph.read(begin, count, reinterpret_cast<std::int64_t*>(ids), reinterpret_cast<float*>(distances));
}

/// Vectors of a file, converted where it says so, copied.
nb::tuple shape_of_file(const Path& path) {
    const io::VectorFile file(path.native());
    return nb::make_tuple(file.n(), file.d(), std::string(name_of(file.dtype())));
}

/// \param begin  the first row that is read
void read_vectors(const Path& path, const Array& out, std::int64_t begin) {
    const GilReleased released;
    io::VectorFile(path.native()).read(begin, out.rows, reinterpret_cast<void*>(out.pointer));
}

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// \param parts  (name, n, None or what gives rows of float64) of the vectors, one after the other
std::string moved_warning(const Matrix<std::int32_t>& ids, const Matrix<float>& distances, const std::string& metric,
                          int at, std::int64_t d, const std::vector<nb::tuple>& parts) {
    std::vector<io::detail::Stored> sets;
    for (const nb::tuple& part : parts) {
        sets.push_back({nb::cast<std::string>(part[0]), nb::cast<std::int64_t>(part[1]), {}, false});
        if (const nb::object rows_of = part[2]; !rows_of.is_none())
            sets.back().read = [rows_of, d](const std::vector<std::int64_t>& rows, double* out) {
                const auto wide = nb::cast<Matrix<double>>(rows_of(rows));
                if (std::int64_t(wide.shape(0)) != std::int64_t(rows.size()) || std::int64_t(wide.shape(1)) != d)
                    throw InvalidArgument("others than the rows that were asked for");
                std::copy_n(wide.data(), wide.size(), out);
            };
    }
    const KnnGraphView graph{std::int64_t(ids.shape(0)), int(ids.shape(1)), parse_metric(metric), ids.data(),
                             distances.data()};
    return io::detail::moved_warning(graph, nullptr, at, d, sets);
}

}  // namespace

void bind_files(nb::module_& module) {
    module.def(
        "identify", [](const Array& x) { return to_tuple(io::identify(x.vectors())); }, nb::arg("x"));
    module.def("save", &save, nb::arg("path"), nb::arg("graph"), nb::arg("dtype"), nb::arg("base").none(),
               nb::arg("recall").none());
    module.def("load", &load, nb::arg("path"));
    module.def("shape_of_file", &shape_of_file, nb::arg("path"));
    module.def("digits_step", &io::detail::digits_step, nb::arg("n"), nb::arg("d"));
    module.def(
        "require_digits",
        [](const std::string& name, std::uintptr_t rows, std::int64_t n, std::int64_t d) {
            const GilReleased released;
            io::detail::require_digits(name, reinterpret_cast<const double*>(rows), n, d);
        },
        nb::arg("name"), nb::arg("rows"), nb::arg("n"), nb::arg("d"));
    module.def("moved_warning", &moved_warning, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"), nb::arg("at"),
               nb::arg("d"), nb::arg("parts"));
    module.def("read_vectors", &read_vectors, nb::arg("path"), nb::arg("out"), nb::arg("begin") = 0);
    const auto base = nb::arg("base"), params = nb::arg("params"), shards = nb::arg("shards");
    module.def(
        "build_sharded",
        [](const Path& base, const nb::dict& given, const nb::dict& shards, nb::object progress) {
            return build_shards(io::VectorFile(base.native()), given, shards, std::move(progress));
        },
        base, params, shards, nb::arg("progress").none());
    module.def(
        "build_sharded_by",
        [](std::int64_t n, std::int64_t d, const std::string& dtype, const nb::object& read, const nb::dict& given,
           const nb::dict& shards, nb::object progress) {
            const DType type = parse_dtype(dtype);
            return build_shards({n, d, type, reader_of(read, d, type)}, given, shards, std::move(progress));
        },
        nb::arg("n"), nb::arg("d"), nb::arg("dtype"), nb::arg("read"), params, shards, nb::arg("progress").none());
    module.def(
        "plan_sharded",
        [](const Path& base, const nb::dict& given, const nb::dict& shards) {
            return to_dict(plan_sharded(io::VectorFile(base.native()), params_of(given), shard_params_of(shards)));
        },
        base, params, shards);
    nb::class_<ShardedGraph>(module, "ShardedGraph")
        .def(
            "__init__", [](ShardedGraph* self, const Path& path) { new (self) ShardedGraph(path.native()); },
            nb::arg("path"))
        .def_static(
            "is_one", [](const Path& path) { return ShardedGraph::is_one(path.native()); }, nb::arg("path"))
        .def_prop_ro("n", &ShardedGraph::n)
        .def_prop_ro("k", &ShardedGraph::k)
        .def_prop_ro("shards", &ShardedGraph::shards)
        .def_prop_ro("bytes", &ShardedGraph::bytes)
        .def_prop_ro("base_path", [](const ShardedGraph& self) { return path_to_str(self.base()); })
        .def("about",
             [](const ShardedGraph& self) {
                 return about(self.metric(), self.dtype(), self.base_identity(), self.recall());
             })
        .def("read", &read_rows, nb::arg("begin"), nb::arg("count"), nb::arg("ids"), nb::arg("distances"))
        .def(
            "write",
            [](const ShardedGraph& self, const Path& path) {
                Hooks hooks{nb::none()};
                hooks.run([&] { self.write(path.native(), hooks.callbacks().interrupt); });
            },
            nb::arg("path"));
}

}  // namespace gnnd::python
