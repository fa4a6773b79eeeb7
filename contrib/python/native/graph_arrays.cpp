// SPDX-License-Identifier: MIT
#include "graph_arrays.h"

#include <nanobind/ndarray.h>

#include <string>
#include <utility>

#include "gnnd/error.h"
#include "gnnd/vectors.h"

namespace gnnd::python {

namespace nb = nanobind;

nb::tuple to_arrays(KnnGraph graph) {
    const auto [held, owner] = owned(std::move(graph));
    const std::size_t shape[] = {std::size_t(held->n()), std::size_t(held->k())};
    return nb::make_tuple(nb::ndarray<nb::numpy, std::int32_t>(held->ids(), 2, shape, owner),
                          nb::ndarray<nb::numpy, float>(held->distances(), 2, shape, owner));
}

namespace {

std::size_t bytes_of(std::int64_t n, std::int64_t k) {
    if (n > kMaxObjects)
        throw InvalidArgument("a graph of " + std::to_string(n) + " objects, allowed are " +
                              std::to_string(kMaxObjects));
    return std::size_t(n) * std::size_t(k) * 4;
}

template <class T>
nb::object to_array(HostMemory memory, std::int64_t n, std::int64_t k) {
    const auto [held, owner] = owned(std::move(memory));
    return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), {std::size_t(n), std::size_t(k)}, owner));
}

}  // namespace

nb::object new_bytes(std::size_t count) {
    const auto [held, owner] = owned(HostMemory(count));
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(held->data(), {count}, owner));
}

NewGraph::NewGraph(std::int64_t n, std::int64_t k) : n_(n), k_(k), ids_(bytes_of(n, k)), distances_(bytes_of(n, k)) {}

nb::tuple NewGraph::to_arrays() && {
    return nb::make_tuple(to_array<std::int32_t>(std::move(ids_), n_, k_),
                          to_array<float>(std::move(distances_), n_, k_));
}

}  // namespace gnnd::python
