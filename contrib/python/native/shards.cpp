// SPDX-License-Identifier: MIT
#include "shards.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "convert.h"
#include "files.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/fold.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/shards/ids.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/request.h"
#include "gnnd/shards/schedule.h"
#include "graph_arrays.h"
#include "hooks.h"
#include "values.h"

namespace gnnd::python {

namespace {

using shards::BaseRecord;
using shards::FileRecord;
using shards::Manifest;

/// (n, d, dtype, checksum) of rows that a function of Python's reads: read(begin, count) returns an array of them.
nb::tuple identify_rows(std::int64_t n, std::int64_t d, const std::string& dtype, const nb::object& read) {
    const DType type = parse_dtype(dtype);
    return to_tuple(io::identify(n, d, type, reader_of(read, d, type)));
}

nb::dict base_to_dict(const BaseRecord& base) {
    nb::dict dict;
    dict["path"] = path_to_str(base.path);
    dict["format"] = base.format ? nb::cast(std::string(name_of(*base.format))) : nb::none();
    dict["n"] = base.n;
    dict["d"] = base.d;
    dict["dtype"] = std::string(name_of(base.dtype));
    dict["bytes"] = base.bytes;
    dict["modified"] = base.modified;
    dict["checksum"] = base.checksum.value_or(0);
    return dict;
}

BaseRecord base_of(const nb::dict& given) {
    BaseRecord base;
    base.path = path_of(given["path"]);
    if (!given["format"].is_none()) base.format = io::parse_vector_format(nb::cast<std::string>(given["format"]));
    base.n = nb::cast<std::int64_t>(given["n"]);
    base.d = nb::cast<std::int64_t>(given["d"]);
    base.dtype = parse_dtype(nb::cast<std::string>(given["dtype"]));
    base.bytes = nb::cast<std::uint64_t>(given["bytes"]);
    base.modified = nb::cast<std::int64_t>(given["modified"]);
    base.checksum = nb::cast<std::uint64_t>(given["checksum"]);
    return base;
}

/// \param id_bytes  of an id in the graph's files; 0: as few as there must be
Manifest begin_manifest(const nb::dict& base, const nb::dict& params, int count, const std::string& plan,
                        int id_bytes) {
    Manifest manifest;
    manifest.plan = parse_merge_plan(plan);
    manifest.base = base_of(base);
    manifest.params = params_of(params);
    if (count < 1 || count > shards::kMaxShards || manifest.base.n < 2 * std::int64_t(count))
        throw InvalidArgument("shards = " + std::to_string(count) + " of " + std::to_string(manifest.base.n) +
                              " vectors; allowed are 1 to " + std::to_string(shards::kMaxShards) +
                              ", of two vectors at least");
    const int least = shards::id_bytes_for(manifest.base.n);
    manifest.id_bytes = id_bytes == 0 ? least : id_bytes;
    if (manifest.id_bytes < least || (manifest.id_bytes != 4 && manifest.id_bytes != 8))
        throw InvalidArgument("id_bytes = " + std::to_string(id_bytes) + " of " + std::to_string(manifest.base.n) +
                              " vectors; allowed are 0, 8, and 4 of up to " + std::to_string(kMaxObjects));
    if (shards::most_rows_at_once(manifest.base.n, count) > kMaxObjects)
        throw InvalidArgument("shards = " + std::to_string(count) + " of " + std::to_string(manifest.base.n) +
                              " vectors; two shards may have " + std::to_string(kMaxObjects) + " at most");
    shards::check_plan(manifest.plan, manifest.params);
    manifest.shards.resize(std::size_t(count));
    return manifest;
}

/// The parameters that decide the graph, as build() takes them.
nb::dict params_to_dict(const Manifest& manifest) {
    nb::dict params;
    detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
        if (!field.decides_graph) return;
        if constexpr (std::is_arithmetic_v<T>)
            params[field.name] = nb::cast(field.of(manifest.params));
        else
            params[field.name] = nb::cast(detail::text_of(field.of(manifest.params)));
    });
    return params;
}

/// \param files  of all shards: name, bytes and checksum of their lists
/// \param merges  pairs of shards
/// \param recall  as measure() gives it, or None
Manifest completed(const Manifest& building,
                   const std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>& files,
                   const std::vector<std::pair<int, int>>& merges, double seconds, int samples,
                   const nb::object& recall) {
    Manifest manifest = building;
    if (int(files.size()) != manifest.count())
        throw InvalidArgument(std::to_string(files.size()) + " files for " + std::to_string(manifest.count()) +
                              " shards");
    for (int i = 0; i < manifest.count(); ++i) {
        shards::ShardRecord& shard = manifest.shards[i];
        const auto& [name, bytes, checksum] = files[i];
        shard.lists = FileRecord{name, bytes, checksum};
        shard.version = 1;
        shard.merged.clear();
    }
    for (const auto& [first, second] : merges) {
        manifest.shards.at(std::size_t(first)).merged.push_back(second);
        manifest.shards.at(std::size_t(second)).merged.push_back(first);
    }
    for (shards::ShardRecord& shard : manifest.shards) std::sort(shard.merged.begin(), shard.merged.end());
    manifest.seconds = seconds;
    manifest.samples = samples;
    manifest.recall = recall_of(recall);
    manifest.complete = true;
    return manifest;
}

/// Rows of a shard's file. \return (bytes, checksum)
nb::tuple save_rows(const std::filesystem::path& path, const nb::tuple& graph, const std::string& dtype,
                    std::int64_t objects) {
    const DType type = parse_dtype(dtype);
    return with_graph(graph, [&](const auto& view) {
        const nb::gil_scoped_release released;
        io::write_graph(path.native(), view, type, objects);
        const io::GraphFile file(path.native());
        const nb::gil_scoped_acquire acquired;
        return nb::make_tuple(file.bytes(), file.checksum());
    });
}

/// All rows of such a file, verified, into the caller's arrays, which tell n, k and the type of ids. All threads that
/// OpenMP gives read.
/// \throws IoError where it is another one than was recorded, or altered
void load_rows(const std::filesystem::path& path, std::uint64_t bytes, std::uint64_t checksum, const nb::tuple& graph,
               std::int64_t objects) {
    with_graph(graph, [&]<class Id>(const GraphView<Id>& view) {
        const nb::gil_scoped_release released;
        const io::GraphFile file = recorded_file(path.native(), bytes, checksum, view.n, view.k, objects);
        if (file.id_bytes() != sizeof(Id)) throw IoError(path.native() + ": altered: ids of another type");
        const cpu::Team team{cpu::Team::resolve(0)};
        team.for_chunks(view.n, file.block_rows(), [&](int, std::int64_t begin, std::int64_t end) {
            const std::int64_t place = begin * view.k;
            file.read_into(begin, end - begin, const_cast<Id*>(view.ids) + place,
                           const_cast<float*>(view.distances) + place);
        });
    });
}

/// GGM of two shards by their own graphs: what their objects have in each other. Rows of the first, then of the second,
/// whose numbers follow. \return (ids, distances), statistics
nb::tuple merge_across(const Array& x1, const nb::tuple& graph1, const Array& x2, const nb::tuple& graph2,
                       const nb::dict& given) {
    const BuildParams params = params_of(given);
    detail::Input pair{{x1.vectors(), x2.vectors()}, {graph_of(graph1), graph_of(graph2)}};
    pair.across = true;  // the shards' own lists have seen what is inside of each
    for (int side = 0; side < 2; ++side) require_vectors(pair.graphs[side], pair.vectors[side].n);
    Hooks hooks{nb::none()};
    NewGraph found(pair.n(), params.k);
    const BuildStats stats = hooks.run([&] {
        return detail::run_into("merge", pair, params, found.ids(), found.distances(), hooks.callbacks(), nullptr);
    });
    return nb::make_tuple(std::move(found).to_arrays(), to_dict(stats));
}

/// Takes objects [first, last) of what was found into the lists, as begin + 0 and so on. See detail::fold().
void fold(const nb::tuple& found, std::int32_t first, std::int32_t last, std::int64_t begin, const nb::tuple& lists,
          int threads) {
    const KnnGraphView view = graph_of(found);
    with_graph(lists, [&]<class Id>(const GraphView<Id>& to) {
        if (to.n != view.n)
            throw InvalidArgument("lists of " + std::to_string(to.n) + " objects for what was found of " +
                                  std::to_string(view.n));
        const nb::gil_scoped_release released;
        detail::fold(view, {first, last, begin}, to.k, const_cast<Id*>(to.ids), const_cast<float*>(to.distances),
                     threads);
    });
}

/// The nearest k of every vector of the sample among x, exact. \param selves  which of x it is, -1: none of them
nb::tuple nearest(const Array& x, const Array& sample, const Array& selves, int k, const nb::dict& given) {
    BuildParams params = params_of(given);
    params.device = detail::choose(params.device);
    if (selves.rows * selves.columns != sample.rows || sample.columns != x.columns || sample.dtype != x.dtype)
        throw InvalidArgument("a sample of other vectors");
    const std::int32_t* const numbers = selves.ids();
    Hooks hooks{nb::none()};
    return to_arrays(hooks.run([&] {
        return detail::nearest_of(x.vectors(), sample.vectors(), numbers, k, params, hooks.callbacks(),
                                  detail::or_heap(nullptr));
    }));
}

}  // namespace

io::GraphFile recorded_file(const std::string& path, std::uint64_t bytes, std::uint64_t checksum, std::int64_t n,
                            std::int64_t k, std::int64_t objects) {
    io::GraphFile file(path);
    if (file.bytes() != bytes || file.checksum() != checksum || file.n() != n || file.k() != k ||
        file.objects() != objects)
        throw IoError(path + ": altered: not the file that was recorded");
    return file;
}

void bind_shards(nb::module_& module) {
    const auto n = nb::arg("n"), k = nb::arg("k"), d = nb::arg("d"), dtype = nb::arg("dtype"), path = nb::arg("path"),
               params = nb::arg("params"), graph = nb::arg("graph"), objects = nb::arg("objects"), x = nb::arg("x");
    module.def("identify_rows", &identify_rows, n, d, dtype, nb::arg("read"));
    module.def(
        "base_of_file",
        [](const std::filesystem::path& path) { return base_to_dict(BaseRecord::of(io::VectorFile(path.native()))); },
        path);
    module.def(
        "sample_objects",
        [](std::int64_t n, std::int64_t count, std::uint64_t seed) {
            return detail::sample_objects<std::int64_t>(n, count, seed);
        },
        n, nb::arg("count"), nb::arg("seed"));
    module.def("save_rows", &save_rows, path, graph, dtype, objects);
    module.def("load_rows", &load_rows, path, nb::arg("bytes"), nb::arg("checksum"), graph, objects);
    module.def("merge_across", &merge_across, nb::arg("x1"), nb::arg("graph1"), nb::arg("x2"), nb::arg("graph2"),
               params);
    module.def("fold", &fold, nb::arg("found"), nb::arg("first"), nb::arg("last"), nb::arg("begin"), nb::arg("lists"),
               nb::arg("threads"));
    module.def("nearest", &nearest, x, nb::arg("sample"), nb::arg("selves"), k, params);
    module.def(
        "recall_of_rows",
        [](std::int64_t n, std::int64_t d, const nb::tuple& lists, const nb::tuple& truth) {
            return with_graph(lists, [&]<class Id>(const GraphView<Id>& rows) {
                return with_graph(truth, [&]<class Other>(const GraphView<Other>& nearest) -> nb::object {
                    if constexpr (std::is_same_v<Id, Other>)
                        if (rows.n == nearest.n && rows.k >= nearest.k && nearest.n != 0)
                            return to_object(detail::estimate_recall(n, d, rows, nearest));
                    throw InvalidArgument("rows of other objects than the true ones");
                });
            });
        },
        n, nb::arg("d"), nb::arg("lists"), nb::arg("truth"));
    nb::class_<Manifest>(module, "Manifest")
        .def_static("begin", &begin_manifest, nb::arg("base"), params, nb::arg("shards"), nb::arg("plan"),
                    nb::arg("id_bytes"))
        .def_static(
            "parse",
            [](const std::string& text, const std::filesystem::path& path) {
                return Manifest::from_text(text, path.native());
            },
            nb::arg("text"), path)
        .def("text", &Manifest::to_text)
        .def(
            "difference", [](const Manifest& self, const Manifest& other) { return to_str(self.difference(other)); },
            nb::arg("other"))
        .def("completed", &completed, nb::arg("files"), nb::arg("merges"), nb::arg("seconds"), nb::arg("samples"),
             nb::arg("recall").none())
        .def("begin_of", &Manifest::begin, nb::arg("shard"))
        .def_prop_ro("base", [](const Manifest& self) { return base_to_dict(self.base); })
        .def_prop_ro("params", [](const Manifest& self) { return params_to_dict(self); })
        .def_prop_ro("recall_at", [](const Manifest& self) { return detail::recall_at_of(self.params); })
        .def_prop_ro("files",
                     [](const Manifest& self) {
                         nb::list files;
                         for (const shards::ShardRecord& shard : self.shards)
                             for (const auto& file : {shard.local, shard.lists})
                                 if (file) files.append(nb::make_tuple(file->name, file->bytes, file->checksum));
                         return files;
                     })
        .def_prop_ro("id_bytes", [](const Manifest& self) { return self.id_bytes; })
        .def_prop_ro("is_ordered", &Manifest::is_ordered)
        .def_prop_ro("complete", [](const Manifest& self) { return self.complete; })
        .def_prop_ro("count", &Manifest::count)
        .def_prop_ro("local_columns", &Manifest::local_columns);
}

}  // namespace gnnd::python
