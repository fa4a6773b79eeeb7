// SPDX-License-Identifier: MIT
#pragma once
/// \file graph_arrays.h
/// A graph in host memory as arrays of numpy, without a copy.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "gnnd/graph.h"
#include "host_memory.h"

namespace gnnd::python {

/// A value that arrays of numpy show, and the capsule that keeps it alive.
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

/// Bytes of HostMemory, as an array of uint8. \throws std::bad_alloc
nanobind::object new_bytes(std::size_t count);

/// The arrays of an n x k graph that a build fills; nothing is in them yet.
class NewGraph {
  public:
    /// \throws InvalidArgument for more objects than a graph may have, std::bad_alloc
    NewGraph(std::int64_t n, std::int64_t k);
    std::int32_t* ids() const { return static_cast<std::int32_t*>(ids_.data()); }
    float* distances() const { return static_cast<float*>(distances_.data()); }
    /// (ids, distances), each with its own memory.
    nanobind::tuple to_arrays() &&;

  private:
    std::int64_t n_, k_;
    HostMemory ids_, distances_;
};

}  // namespace gnnd::python
