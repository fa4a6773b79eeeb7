// SPDX-License-Identifier: MIT
#include "near.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.h"
#include "convert.h"
#include "files.h"
#include "gil.h"
#include "gnnd/cpu/backend.h"
#include "gnnd/cpu/parallel.h"
#include "gnnd/error.h"
#include "gnnd/shards/borders.h"
#include "gnnd/shards/near.h"
#include "gnnd/shards/order.h"
#include "gnnd/shards/restore.h"
#include "graph_arrays.h"
#include "hooks.h"
#include "shards.h"
#include "values.h"

namespace gnnd::python {

namespace {

using shards::Manifest;
using shards::PairCounts;
using shards::Task;

/// An array of one dimension that Python owns.
template <class T>
using NewElements = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
NewElements<T> to_array(std::vector<T> values) {
    const auto [held, owner] = owned(std::move(values));
    return NewElements<T>(held->data(), {held->size()}, owner);
}

/// The elements of an array of one dimension.
template <class T>
using Elements = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
std::vector<T> to_vector(const Elements<T>& values) {
    return {values.data(), values.data() + values.size()};
}

/// Planes of the partition by which the base is ordered. \param sample  its rows order_sample()
NewElements<float> order_planes(const Manifest& manifest, const Array& sample, int threads) {
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    const cpu::Team team{cpu::Team::resolve(threads), &callbacks.interrupt};
    return to_array(
        hooks.run([&] { return shards::make_partition(manifest, sample.vectors(), manifest.params, team).planes(); }));
}

/// The cells of vectors, which the metric must be able to work with. \param first  their number in the base
NewElements<std::uint16_t> order_cells(const Manifest& manifest, const Elements<float>& planes, const Array& x,
                                       std::int64_t first, int threads) {
    std::vector<float> given = to_vector(planes);
    Hooks hooks{nb::none()};
    const Callbacks callbacks = hooks.callbacks();
    const cpu::Team team{cpu::Team::resolve(threads), &callbacks.interrupt};
    return to_array(hooks.run([&] {
        const VectorView vectors = x.vectors();
        cpu::check_vectors(vectors, manifest.params.metric, threads, callbacks, first);
        const shards::Partition partition(vectors.d, manifest.params.metric, std::move(given));
        std::vector<std::uint16_t> cells(static_cast<std::size_t>(vectors.n));
        partition.find(vectors, cells.data(), team);
        return cells;
    }));
}

/// The shards of rows that follow each other in the base.
/// \param next_in_cell  for each cell the place of its next row
NewElements<std::int32_t> order_shards(const Manifest& manifest, const Elements<std::uint16_t>& cells,
                                       const Elements<std::int64_t>& next_in_cell) {
    std::vector<std::int64_t> next = to_vector(next_in_cell);
    for (std::size_t i = 0; i < cells.size(); ++i)
        if (cells.data()[i] >= next.size()) throw InvalidArgument("a cell that is none");
    std::vector<std::int32_t> found(cells.size());
    shards::find_shards(manifest, cells.data(), std::int64_t(cells.size()), next, found.data());
    return to_array(std::move(found));
}

/// Pairs of neighbours by shards, from the graph of a sample. \param shards  of its objects
NewElements<std::int64_t> count_borders(const Manifest& manifest, const Array& sample,
                                        const Elements<std::int32_t>& shards, const nb::dict& given) {
    const BuildParams params = params_of(given);
    const std::vector<std::int32_t> of_objects = to_vector(shards);
    if (std::int64_t(of_objects.size()) != sample.rows) throw InvalidArgument("shards of other objects");
    Hooks hooks{nb::none()};
    return to_array(hooks.run([&] {
        return shards::count_borders(sample.vectors(), of_objects, manifest.count(), params, hooks.callbacks())
            .counts();
    }));
}

/// The next pairs of shards to merge; none where it is enough. \param recall  of the graph so far, as measured
std::vector<std::pair<int, int>> next_merges(const Manifest& manifest, const Elements<std::int64_t>& borders,
                                             const Elements<std::int64_t>& truth,
                                             const std::vector<std::pair<int, int>>& merged, const nb::object& recall) {
    const int count = manifest.count();
    std::vector<Task> before;
    for (const auto& [first, second] : merged) {
        if (first < 0 || first >= second || second >= count) throw InvalidArgument("a pair of shards that is none");
        before.push_back({Task::Kind::merge, first, second});
    }
    std::vector<std::pair<int, int>> chosen;
    for (const Task& merge : shards::next_merges(manifest, PairCounts(count, to_vector(borders)),
                                                 PairCounts(count, to_vector(truth)), before, recall_of(recall)))
        chosen.emplace_back(merge.first, merge.second);
    return chosen;
}

/// For each place the row of the base.
using OrderOfRows = std::variant<Elements<std::int32_t>, Elements<std::int64_t>>;

/// Rows of the base, from lists in the order of the shards.
/// \param files_of_lists  a function that gives the file of a shard's lists: its path, bytes and checksum
/// \param rows   their lists, into the caller's arrays
void restore_rows(const Manifest& manifest, const OrderOfRows& order, int result, const nb::object& files_of_lists,
                  const nb::tuple& rows, int threads) {
    const auto places = std::visit([](const auto& rows) { return std::int64_t(rows.size()); }, order);
    if (places != manifest.base.n || result < 0 || result >= manifest.count())
        throw InvalidArgument("an order of other rows");
    const shards::Ordered ordered{
        std::visit([](const auto& rows) { return decltype(shards::Ordered::order)(rows.data()); }, order), "the order",
        [&](int shard) {
            const GilTaken gil;
            const auto [path, bytes, checksum] =
                nb::cast<std::tuple<nb::str, std::uint64_t, std::uint64_t>>(files_of_lists(shard));
            return recorded_file(path_of(path), bytes, checksum, manifest.rows(shard), manifest.params.k,
                                 manifest.base.n);
        }};
    with_graph(rows, [&]<class Id>(const GraphView<Id>& to) {
        if (to.n != manifest.rows(result) || to.k != manifest.params.k) throw InvalidArgument("lists of other rows");
        Hooks hooks{nb::none()};
        hooks.run([&] {
            shards::restore_rows(ordered, manifest, result, const_cast<Id*>(to.ids), const_cast<float*>(to.distances),
                                 threads, hooks.callbacks().interrupt);
        });
    });
}

}  // namespace

void bind_near(nb::module_& module) {
    const auto manifest = nb::arg("manifest"), threads = nb::arg("threads"), sample = nb::arg("sample");
    module.def(
        "order_sample", [](const Manifest& given) { return to_array(shards::order_sample(given, given.params)); },
        manifest);
    module.def(
        "border_sample", [](const Manifest& given) { return to_array(shards::border_sample(given, given.params)); },
        manifest);
    module.def("order_planes", &order_planes, manifest, sample, threads);
    module.def("order_cells", &order_cells, manifest, nb::arg("planes"), nb::arg("x"), nb::arg("first"), threads);
    module.def("order_shards", &order_shards, manifest, nb::arg("cells"), nb::arg("next_in_cell"));
    module.def("count_borders", &count_borders, manifest, sample, nb::arg("shards"), nb::arg("params"));
    module.def("next_merges", &next_merges, manifest, nb::arg("borders"), nb::arg("truth"), nb::arg("merged"),
               nb::arg("recall"));
    module.def("recall_of_builds", &shards::recall_of_builds, nb::arg("target"));
    module.def("recall_of_merges", &shards::recall_of_merges, nb::arg("target"), nb::arg("merges"), nb::arg("shards"));
    module.def("restore_rows", &restore_rows, manifest, nb::arg("order").noconvert(), nb::arg("result"),
               nb::arg("files_of_lists"), nb::arg("rows"), threads);
}

}  // namespace gnnd::python
