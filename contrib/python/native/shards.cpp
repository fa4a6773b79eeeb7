// SPDX-License-Identifier: MIT
#include "shards.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "convert.h"
#include "files.h"
#include "gil.h"
#include "gnnd/builder.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/detail/checks.h"
#include "gnnd/detail/fold.h"
#include "gnnd/detail/recall.h"
#include "gnnd/detail/run.h"
#include "gnnd/error.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/io/graph_file.h"
#include "gnnd/shards/ids.h"
#include "graph_arrays.h"
#include "hooks.h"
#include "host_memory.h"
#include "values.h"

namespace gnnd::python {

namespace {

/// (n, d, dtype, checksum) of rows that a function of Python's reads: read(begin, count) returns an array of them.
nb::tuple identify_rows(std::int64_t n, std::int64_t d, const std::string& dtype, const nb::object& read) {
    const DType type = parse_dtype(dtype);
    return to_tuple(io::identify(n, d, type, reader_of(read, d, type)));
}

/// Rows of a shard's file. \return (bytes, checksum)
nb::tuple save_rows(const std::filesystem::path& path, const nb::tuple& graph, const std::string& dtype,
                    std::int64_t objects) {
    const DType type = parse_dtype(dtype);
    return with_graph(graph, [&](const auto& view) {
        const GilReleased released;
        io::write_graph(path.native(), view, type, objects);
        const io::GraphFile file(path.native());
        const GilTaken acquired;
        return nb::make_tuple(file.bytes(), file.checksum());
    });
}

/// Reads all rows of a file, which is verified by that, by all threads that OpenMP gives.
/// \param into  into(thread, begin, end) gives the places of ids and distances of these rows, a block at most
template <class Id, class Into>
void read_all(const io::GraphFile& file, const std::filesystem::path& path, const Into& into) {
    if (file.id_bytes() != sizeof(Id)) throw IoError(path.native() + ": altered: ids of another type");
    const cpu::Team team{cpu::Team::resolve(0)};
    team.for_chunks(file.n(), file.block_rows(), [&](int thread, std::int64_t begin, std::int64_t end) {
        const auto [ids, distances] = into(thread, begin, end);
        file.read_into(begin, end - begin, ids, distances);
    });
}

/// All rows of such a file, verified, into the caller's arrays, which tell n, k and the type of ids.
/// \throws IoError where it is another one than was recorded, or altered
void load_rows(const std::filesystem::path& path, std::uint64_t bytes, std::uint64_t checksum, const nb::tuple& graph,
               std::int64_t objects) {
    with_graph(graph, [&]<class Id>(const GraphView<Id>& view) {
        const GilReleased released;
        const io::GraphFile file = recorded_file(path.native(), bytes, checksum, view.n, view.k, objects);
        read_all<Id>(file, path, [&](int, std::int64_t begin, std::int64_t) {
            const std::int64_t place = begin * view.k;
            return std::pair(const_cast<Id*>(view.ids) + place, const_cast<float*>(view.distances) + place);
        });
    });
}

/// The same, but the rows go nowhere: to get memory for all of them would take half as long again.
void check_rows(const std::filesystem::path& path, std::uint64_t bytes, std::uint64_t checksum, std::int64_t n,
                std::int64_t k, std::int64_t objects, int id_bytes) {
    const GilReleased released;
    const io::GraphFile file = recorded_file(path.native(), bytes, checksum, n, k, objects);
    shards::with_id_type(id_bytes, [&]<class Id>(Id) {
        struct Block {
            std::vector<Id> ids;
            std::vector<float> distances;
        };
        std::vector<Block> blocks(std::size_t(cpu::Team::resolve(0)));
        read_all<Id>(file, path, [&](int thread, std::int64_t begin, std::int64_t end) {
            Block& block = blocks[std::size_t(thread)];
            block.ids.resize(std::size_t((end - begin) * k));
            block.distances.resize(std::size_t((end - begin) * k));
            return std::pair(block.ids.data(), block.distances.data());
        });
    });
}

/// GNND of one shard. \return (ids, distances), statistics
nb::tuple build_shard(const Array& x, const nb::dict& given) {
    const BuildParams params = params_of(given);
    Hooks hooks{nb::none()};
    NewGraph graph(x.rows, params.k);
    KeptResources resources;
    const BuildStats stats = hooks.run(
        [&] { return build_into(x.vectors(), params, graph.ids(), graph.distances(), hooks.callbacks(), &resources); });
    return nb::make_tuple(std::move(graph).to_arrays(), to_dict(stats));
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
    KeptResources resources;
    const BuildStats stats = hooks.run([&] {
        return detail::run_into("merge", pair, params, found.ids(), found.distances(), hooks.callbacks(), &resources);
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
        const GilReleased released;
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
        "sample_objects",
        [](std::int64_t n, std::int64_t count, std::uint64_t seed) {
            return detail::sample_objects<std::int64_t>(n, count, seed);
        },
        n, nb::arg("count"), nb::arg("seed"));
    module.def("save_rows", &save_rows, path, graph, dtype, objects);
    module.def("load_rows", &load_rows, path, nb::arg("bytes"), nb::arg("checksum"), graph, objects);
    module.def("check_rows", &check_rows, path, nb::arg("bytes"), nb::arg("checksum"), n, k, objects,
               nb::arg("id_bytes"));
    module.def("build_shard", &build_shard, x, params);
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
}

}  // namespace gnnd::python
