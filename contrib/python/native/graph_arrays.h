// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_arrays.h
/// A graph in host memory as arrays of numpy, without a copy.

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "gnnd/graph.h"

namespace gnnd::python {

/// What arrays of numpy show, where it stays, and who keeps it alive.
template <class T>
struct Owned {
    T* value;
    nanobind::capsule owner;
};

/// Hands a value over to the arrays that will show it.
template <class T>
Owned<T> owned(T value) {
    auto kept = std::make_unique<T>(std::move(value));
    T* const held = kept.get();
    return {held, nanobind::capsule(kept.release(), [](void* pointer) noexcept { delete static_cast<T*>(pointer); })};
}

/// (ids, distances), which hold the graph between them.
nanobind::tuple to_arrays(KnnGraph graph);

}  // namespace gnnd::python
