// SPDX-License-Identifier: MIT
#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_memory.h"
#include "gil.h"
#include "gnnd/error.h"

namespace gnnd::python {

namespace {

/// The type of one component, or none.
std::optional<DType> dtype_of(nb::dlpack::dtype dtype) {
    if (dtype.lanes != 1) return std::nullopt;
    const auto is = [&](nb::dlpack::dtype_code code, int bits) {
        return dtype.code == std::uint8_t(code) && dtype.bits == bits;
    };
    using Code = nb::dlpack::dtype_code;
    if (is(Code::Float, 32)) return DType::f32;
    if (is(Code::Float, 16)) return DType::f16;
    if (is(Code::Bfloat, 16)) return DType::bf16;
    if (is(Code::UInt, 8)) return DType::u8;
    if (is(Code::Int, 8)) return DType::i8;
    if (is(Code::Int, 32)) return DType::i32;
    return std::nullopt;
}

template <class T>
T* elements(const Array& array, DType dtype) {
    if (array.dtype != dtype)
        throw nb::type_error(("an array of " + std::string(name_of(array.dtype)) + " where " +
                              std::string(name_of(dtype)) + " was expected")
                                 .c_str());
    if (array.stride != array.columns * std::int64_t(sizeof(T)))
        throw nb::value_error("an array of a graph must be contiguous");
    return reinterpret_cast<T*>(array.pointer);
}

/// The types of arrays that gnnd makes on a GPU.
struct DeviceType {
    const char* name;
    std::size_t size;
    nb::dlpack::dtype dlpack;
};
const DeviceType& device_type_of(const std::string& name) {
    static const DeviceType types[] = {
        {"i32", 4, nb::dtype<std::int32_t>()}, {"i64", 8, nb::dtype<std::int64_t>()}, {"f32", 4, nb::dtype<float>()}};
    for (const DeviceType& type : types)
        if (name == type.name) return type;
    throw InvalidArgument("no array on a GPU is of type " + name);
}

/// An array of one or two dimensions on a GPU that Python owns, and that leaves by DLPack.
class DeviceArray {
  public:
    DeviceArray(int device, std::vector<std::size_t> shape, const std::string& dtype, nb::object allocator,
                std::uintptr_t stream)
        : shape_(std::move(shape)),
          type_(device_type_of(dtype)),
          memory_(device, bytes(), CallerMemory(std::move(allocator)), stream) {}

    /// Of one with n x k ids or distances.
    Array view() const {
        const auto columns = std::int64_t(shape_.at(1));
        return {memory_.pointer(),       std::int64_t(shape_[0]), columns, columns * std::int64_t(type_.size),
                parse_dtype(type_.name), memory_.device(),        {}};
    }
    nb::tuple shape() const {
        return shape_.size() == 1 ? nb::make_tuple(shape_[0]) : nb::make_tuple(shape_[0], shape_[1]);
    }
    std::string dtype() const { return type_.name; }
    int device() const { return memory_.device(); }
    std::uintptr_t pointer() const { return memory_.pointer(); }
    /// \param out  as many bytes
    void read(std::uintptr_t out, std::uintptr_t stream) const {
        copy_to_host(device(), stream, reinterpret_cast<void*>(out), reinterpret_cast<const void*>(pointer()), 1,
                     bytes(), bytes());
    }

    /// A capsule whose consumer keeps `self` alive.
    static nb::object to_dlpack(const nb::object& self) {
        const auto& array = nb::cast<const DeviceArray&>(self);
        return nb::cast(nb::ndarray<nb::device::cuda>(reinterpret_cast<void*>(array.pointer()), array.shape_.size(),
                                                      array.shape_.data(), self, nullptr, array.type_.dlpack,
                                                      nb::device::cuda::value, array.device()));
    }

  private:
    std::size_t bytes() const { return std::accumulate(shape_.begin(), shape_.end(), type_.size, std::multiplies<>()); }

    std::vector<std::size_t> shape_;
    DeviceType type_;
    DeviceMemory memory_;
};

}  // namespace

std::int32_t* Array::ids() const {
    return elements<std::int32_t>(*this, DType::i32);
}

float* Array::distances() const {
    return elements<float>(*this, DType::f32);
}

KnnGraphView graph_of(const Array& ids, const Array& distances, const std::string& metric) {
    if (ids.rows != distances.rows || ids.columns != distances.columns)
        throw InvalidArgument("a graph whose ids are " + std::to_string(ids.rows) + " x " +
                              std::to_string(ids.columns) + " and whose distances are " +
                              std::to_string(distances.rows) + " x " + std::to_string(distances.columns));
    return {ids.rows, ids.columns, parse_metric(metric), ids.ids(), distances.distances()};
}

KnnGraphView graph_of(const nb::tuple& parts) {
    return graph_of(nb::cast<const Array&>(parts[0]), nb::cast<const Array&>(parts[1]),
                    nb::cast<std::string>(parts[2]));
}

void require_shape(const WideIds& ids, const Array& distances) {
    if (std::int64_t(ids.shape(0)) != distances.rows || std::int64_t(ids.shape(1)) != distances.columns)
        throw InvalidArgument("a graph whose ids are " + std::to_string(ids.shape(0)) + " x " +
                              std::to_string(ids.shape(1)) + " and whose distances are " +
                              std::to_string(distances.rows) + " x " + std::to_string(distances.columns));
}

void require_vectors(const KnnGraphView& graph, std::int64_t vectors) {
    if (graph.n != vectors)
        throw InvalidArgument("a graph of " + std::to_string(graph.n) + " objects for " + std::to_string(vectors) +
                              " vectors");
}

io::ReadVectors reader_of(nb::handle read, std::int64_t d, DType dtype) {
    return [=](std::int64_t begin, std::int64_t count, std::byte* out) {
        const GilTaken gil;
        const nb::object rows = read(begin, count);
        const auto& array = nb::cast<const Array&>(rows);
        const auto text = [](std::int64_t n, std::int64_t components, DType type) {
            return std::to_string(n) + " x " + std::to_string(components) + " " + std::string(name_of(type));
        };
        if (array.rows != count || array.columns != d || array.dtype != dtype)
            throw InvalidArgument("rows " + std::to_string(begin) + " + " + std::to_string(count) + " came as " +
                                  text(array.rows, array.columns, array.dtype) + ", expected " + text(count, d, dtype));
        const VectorView view = array.vectors();
        const std::size_t row = std::size_t(d) * size_of(dtype);
        for (std::int64_t i = 0; i < count; ++i, out += row) std::memcpy(out, view.row(i), row);
    };
}

Array from_dlpack(const nb::object& capsule) {
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(capsule, array, false)) throw nb::type_error("not a DLPack capsule that can be read");
    if (array.ndim() != 2)
        throw nb::value_error(
            ("an array of " + std::to_string(array.ndim()) + " dimensions; vectors are n x d").c_str());
    const std::optional<DType> dtype = dtype_of(array.dtype());
    if (!dtype) {
        const std::string message = "DLPack's type of code " + std::to_string(array.dtype().code) + " and " +
                                    std::to_string(array.dtype().bits) + " bits; vectors are of " +
                                    std::string(vector_dtype_names());
        throw nb::type_error(message.c_str());
    }
    const int device = array.device_type() == nb::device::cuda::value ? array.device_id() : -1;
    const auto size = std::int64_t(size_of(*dtype));
    const auto rows = std::int64_t(array.shape(0)), columns = std::int64_t(array.shape(1));
    if (columns > 1 && array.stride(1) != 1)
        throw nb::value_error("rows whose components do not lie one behind the other; make the array contiguous");
    const std::int64_t stride = rows > 1 ? array.stride(0) * size : columns * size;
    if (stride < columns * size) throw nb::value_error("rows that overlap; make the array contiguous");
    return {reinterpret_cast<std::uintptr_t>(array.data()), rows, columns, stride, *dtype, device, std::move(array)};
}

NewArray new_device_array(int device, std::int64_t count, const char* dtype, const nb::object& allocator,
                          std::uintptr_t stream) {
    nb::object array = nb::cast(new DeviceArray(device, {std::size_t(count)}, dtype, allocator, stream),
                                nb::rv_policy::take_ownership);
    void* const pointer = reinterpret_cast<void*>(nb::cast<const DeviceArray&>(array).pointer());
    return {std::move(array), pointer};
}

void bind_arrays(nb::module_& module) {
    nb::class_<Array>(module, "Array")
        .def(
            "__init__",
            [](Array* self, const nb::object&, std::uintptr_t pointer, std::int64_t rows, std::int64_t columns,
               std::int64_t stride, const std::string& dtype,
               int device) { new (self) Array{pointer, rows, columns, stride, parse_dtype(dtype), device, {}}; },
            nb::arg("owner"), nb::arg("pointer"), nb::arg("rows"), nb::arg("columns"), nb::arg("stride"),
            nb::arg("dtype"), nb::arg("device") = -1, nb::keep_alive<1, 2>(), "A view that keeps its owner alive.")
        .def_static("from_dlpack", &from_dlpack, nb::arg("capsule"))
        .def_ro("pointer", &Array::pointer)
        .def_ro("rows", &Array::rows)
        .def_ro("columns", &Array::columns)
        .def_ro("stride", &Array::stride)
        .def_prop_ro("dtype", [](const Array& self) { return std::string(name_of(self.dtype)); })
        .def_ro("device", &Array::device)
        .def(
            "copy_to_host",
            [](const Array& self, const Array& out, std::uintptr_t stream) {
                copy_to_host(self.device, stream, reinterpret_cast<void*>(out.pointer),
                             reinterpret_cast<const void*>(self.pointer), self.rows,
                             std::size_t(self.columns) * size_of(self.dtype), std::size_t(self.stride));
            },
            nb::arg("out"), nb::arg("stream"), nb::call_guard<GilReleased>(),
            "Copies an array on a GPU to one of the same shape without gaps.");
    nb::class_<DeviceArray>(module, "DeviceMemory")
        .def(nb::init<int, std::vector<std::size_t>, const std::string&, nb::object, std::uintptr_t>(),
             nb::arg("device"), nb::arg("shape"), nb::arg("dtype"), nb::arg("allocator").none(), nb::arg("stream"))
        .def("view", &DeviceArray::view, nb::keep_alive<0, 1>())
        .def("read", &DeviceArray::read, nb::arg("out"), nb::arg("stream"), nb::call_guard<GilReleased>(),
             "Copies all of it to an address in host memory.")
        .def_prop_ro("shape", &DeviceArray::shape)
        .def_prop_ro("dtype", &DeviceArray::dtype)
        .def_prop_ro("device", &DeviceArray::device)
        .def_prop_ro("pointer", &DeviceArray::pointer)
        .def("to_dlpack", [](nb::object self) { return DeviceArray::to_dlpack(self); });
}

}  // namespace gnnd::python
