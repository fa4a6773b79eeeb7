// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_arrays.h
/// A graph in host memory as arrays of numpy, without a copy.

#include <nanobind/nanobind.h>

#include "gnnd/graph.h"

namespace gnnd::python {

/// (ids, distances), which hold the graph between them.
nanobind::tuple to_arrays(KnnGraph graph);

}  // namespace gnnd::python
