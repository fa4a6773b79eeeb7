// SPDX-License-Identifier: MIT
#include "values.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <optional>
#include <type_traits>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/numbers.h"
#include "gnnd/error.h"

namespace gnnd::python {

namespace {

std::string kind_of(const nb::handle& value) {
    return nb::cast<std::string>(value.type().attr("__name__"));
}

[[noreturn]] void refuse(const std::string& name, const nb::handle& value, const char* expected) {
    PyErr_Clear();
    const nb::object shown = nb::module_::import_("reprlib").attr("repr")(value);  // which cuts what is long
    throw nb::type_error((name + " must be " + expected + ", not " + kind_of(value) + ": " + text_of(shown)).c_str());
}

/// Returns the bytes that Python has just made of a str, or throws its error.
std::string taken_bytes(PyObject* made) {
    const nb::object bytes = nb::steal(made);
    if (!bytes.is_valid()) throw nb::python_error();
    return {PyBytes_AsString(bytes.ptr()), std::size_t(PyBytes_Size(bytes.ptr()))};
}
nb::str taken_str(PyObject* made) {
    const nb::object str = nb::steal(made);
    if (!str.is_valid()) throw nb::python_error();
    return nb::borrow<nb::str>(str);
}

/// The digits of a whole number, however many.
std::string whole_text(const std::string& name, const nb::handle& value) {
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid() || PyBool_Check(value.ptr())) refuse(name, value, "an int");
    return text_of(nb::str(index));
}

}  // namespace

std::string text_of(nb::handle str) {
    return taken_bytes(PyUnicode_AsEncodedString(str.ptr(), "utf-8", "backslashreplace"));
}

nb::str to_str(std::string_view text) {
    return taken_str(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "backslashreplace"));
}

std::string path_of(nb::handle str) {
    return taken_bytes(PyUnicode_EncodeFSDefault(str.ptr()));
}

nb::str path_to_str(const std::string& path) {
    return taken_str(PyUnicode_DecodeFSDefaultAndSize(path.data(), Py_ssize_t(path.size())));
}

template <class T>
T value_of(const std::string& name, nb::handle value, T low, T high) {
    if constexpr (std::is_same_v<T, bool>) {
        if (!PyBool_Check(value.ptr()) && kind_of(value) != "bool_" && kind_of(value) != "bool")  // numpy's
            refuse(name, value, "a bool");
        return PyObject_IsTrue(value.ptr()) == 1;
    } else if constexpr (std::is_integral_v<T>) {
        const std::string text = whole_text(name, value);
        const std::optional<T> number = detail::read_number<T>(text);
        if (!number)
            throw InvalidArgument(name + " = " + text + ", allowed are " + std::to_string(low) + " to " +
                                  std::to_string(high));
        return *number;
    } else if constexpr (std::is_floating_point_v<T>) {
        const double number = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
            PyErr_Clear();
            throw InvalidArgument(name + " is beyond what a float64 holds");
        }
        if (PyErr_Occurred() != nullptr || PyBool_Check(value.ptr())) refuse(name, value, "a number");
        return T(number);
    } else {
        if (!nb::isinstance<nb::str>(value)) refuse(name, value, "a str");
        return text_of(value);
    }
}

template bool value_of(const std::string&, nb::handle, bool, bool);
template int value_of(const std::string&, nb::handle, int, int);
template std::int64_t value_of(const std::string&, nb::handle, std::int64_t, std::int64_t);
template std::uint64_t value_of(const std::string&, nb::handle, std::uint64_t, std::uint64_t);
template float value_of(const std::string&, nb::handle, float, float);
template double value_of(const std::string&, nb::handle, double, double);
template std::string value_of(const std::string&, nb::handle, std::string, std::string);

std::int64_t bytes_of(const std::string& name, nb::handle value) {
    if (!nb::isinstance<nb::str>(value)) {
        if (PyIndex_Check(value.ptr()) == 0) refuse(name, value, "bytes, as an int or as '8GiB'");
        return value_of<std::int64_t>(name, value);
    }
    const std::string text = text_of(value);
    const std::optional<std::int64_t> bytes = detail::read_bytes(text);
    if (!bytes) throw InvalidArgument(name + " = '" + text + "', allowed are " + detail::kSizes);
    return *bytes;
}

void bind_values(nb::module_& module) {
    const auto name = nb::arg("name");
    const auto value = nb::arg("value").none();
    module.def(
        "whole",
        [](const std::string& name, nb::handle value, std::int64_t low, std::optional<std::int64_t> high) {
            const std::string text = whole_text(name, value);
            const std::optional<std::int64_t> number = detail::read_number<std::int64_t>(text);
            if (!number || *number < low || (high && *number > *high))
                throw InvalidArgument(name + " = " + text + ", allowed are " + std::to_string(low) +
                                      (high ? " to " + std::to_string(*high) : " and more"));
            return *number;
        },
        name, value, nb::arg("low") = std::numeric_limits<std::int64_t>::min(), nb::arg("high") = nb::none());
    module.def(
        "real",
        [](const std::string& name, nb::handle value, double low, double high) {
            const auto number = value_of<double>(name, value);
            detail::check_range(name, number, low, high);
            return number;
        },
        name, value, nb::arg("low"), nb::arg("high"));
    module.def("bytes_of", &bytes_of, name, value);
}

}  // namespace gnnd::python
