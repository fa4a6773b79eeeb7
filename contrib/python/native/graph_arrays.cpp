// SPDX-License-Identifier: MIT
#include "graph_arrays.h"

#include <nanobind/ndarray.h>

#include <utility>

namespace gnnd::python {

namespace nb = nanobind;

nb::tuple to_arrays(KnnGraph graph) {
    const auto [held, owner] = owned(std::move(graph));
    const std::size_t shape[] = {std::size_t(held->n()), std::size_t(held->k())};
    return nb::make_tuple(nb::ndarray<nb::numpy, std::int32_t>(held->ids(), 2, shape, owner),
                          nb::ndarray<nb::numpy, float>(held->distances(), 2, shape, owner));
}

}  // namespace gnnd::python
