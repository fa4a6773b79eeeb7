// SPDX-License-Identifier: MIT
#include "manifest.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "convert.h"
#include "files.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/detail/recall.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"
#include "gnnd/shards/ids.h"
#include "gnnd/shards/manifest.h"
#include "gnnd/shards/request.h"
#include "gnnd/shards/schedule.h"
#include "values.h"

namespace gnnd::python {

namespace nb = nanobind;

namespace {

using shards::BaseRecord;
using shards::FileRecord;
using shards::Manifest;

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

}  // namespace

void bind_manifest(nb::module_& module) {
    const auto params = nb::arg("params"), path = nb::arg("path");
    module.def(
        "base_of_file",
        [](const std::filesystem::path& path) { return base_to_dict(BaseRecord::of(io::VectorFile(path.native()))); },
        path);
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
