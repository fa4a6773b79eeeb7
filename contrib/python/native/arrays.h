// SPDX-License-Identifier: MIT
#pragma once
/// \file arrays.h
/// Arrays of Python's world as gnnd sees them. What makes them of numpy, DLPack and CUDA arrays is gnnd/_arrays.py.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

#include "gnnd/dtype.h"
#include "gnnd/graph.h"
#include "gnnd/io/base_identity.h"
#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::python {

namespace nb = nanobind;

/// rows x columns elements in somebody else's memory, rows `stride` bytes apart. Whoever makes it keeps the memory, but
/// for what came by DLPack.
struct Array {
    std::uintptr_t pointer = 0;
    std::int64_t rows = 0, columns = 0;
    std::int64_t stride = 0;  ///< bytes from one row to the next
    DType dtype = DType::f32;
    int device = -1;              ///< the GPU in whose memory it lies; -1: the host
    nb::ndarray<nb::ro> owner{};  ///< of those that came by DLPack

    VectorView vectors() const { return {reinterpret_cast<const void*>(pointer), rows, columns, dtype, stride}; }
    /// The elements, as a graph's arrays are read and written. \throws nb::type_error for others than i32 and f32
    std::int32_t* ids() const;
    float* distances() const;
};

/// \throws InvalidArgument where both do not have one shape
KnnGraphView graph_of(const Array& ids, const Array& distances, const std::string& metric);
/// The same of a tuple of them, which keeps the memory.
KnnGraphView graph_of(const nb::tuple& parts);
/// Ids of 64 bits in the caller's memory, n x k; arrays of other types go by Array.
using WideIds = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
/// \throws InvalidArgument where both do not have one shape
void require_shape(const WideIds& ids, const Array& distances);
/// Calls f with the view of a graph whose ids are of 32 bits, in an Array, or of 64.
template <class F>
auto with_graph(const nb::tuple& parts, const F& f) {
    WideIds ids;
    if (!nb::try_cast(parts[0], ids)) return f(graph_of(parts));
    const auto& distances = nb::cast<const Array&>(parts[1]);
    require_shape(ids, distances);
    return f(WideGraphView{distances.rows, distances.columns, parse_metric(nb::cast<std::string>(parts[2])), ids.data(),
                           distances.distances()});
}

/// \throws InvalidArgument unless the graph has a row for each of so many vectors
void require_vectors(const KnnGraphView& graph, std::int64_t vectors);

/// Rows of d components as a function of Python's gives them: read(begin, count) returns an Array of them, on the host.
/// It may be called from any thread. \param read  must outlive the result
/// \throws InvalidArgument for others than were asked for, and what the function raises
io::ReadVectors reader_of(nb::handle read, std::int64_t d, DType dtype);

/// An array that Python will own, and the memory in it.
struct NewArray {
    nb::object array;
    void* pointer;
};
/// One of `count` elements on a GPU, as gnnd/_device_array.py wraps them. With the GIL.
/// \param dtype  "i32", "i64" or "f32" \throws OutOfDeviceMemory
NewArray new_device_array(int device, std::int64_t count, const char* dtype, const nb::object& allocator,
                          std::uintptr_t stream);

/// Reads a capsule of DLPack, which it consumes. \throws nb::type_error that names what is not taken
Array from_dlpack(const nb::object& capsule);

void bind_arrays(nb::module_& module);

}  // namespace gnnd::python
