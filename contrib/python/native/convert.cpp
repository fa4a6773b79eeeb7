// SPDX-License-Identifier: MIT
#include "convert.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "gnnd/detail/checks.h"
#include "gnnd/detail/numbers.h"
#include "gnnd/detail/params_table.h"
#include "gnnd/error.h"

namespace gnnd::python {

namespace {

[[noreturn]] void throw_type_error(const std::string& message) {
    throw nb::type_error(message.c_str());
}

std::string kind_of(const nb::handle& value) {
    return nb::cast<std::string>(value.type().attr("__name__"));
}

[[noreturn]] void refuse(const std::string& name, const nb::handle& value, const char* expected) {
    constexpr Py_ssize_t kShown = 100;
    PyErr_Clear();
    const nb::str shown = nb::repr(value);
    const bool all = PyUnicode_GetLength(shown.ptr()) <= kShown;
    throw_type_error(name + " must be " + expected + ", not " + kind_of(value) + ": " +
                     text_of(nb::steal(PyUnicode_Substring(shown.ptr(), 0, kShown))) + (all ? "" : "..."));
}

nb::dict choices_of(const Choices& choices) {
    nb::dict dict;
    dict["exhaustive"] = choices.exhaustive;
    dict["list_size"] = choices.list_size;
    dict["samples"] = choices.samples;
    dict["trees"] = choices.trees;
    dict["capacity"] = choices.capacity;
    dict["codes"] = detail::text_of(choices.codes).c_str();
    dict["parts"] = choices.parts;
    dict["batches"] = choices.batches;
    return dict;
}

/// "recall" and its interval; nothing where it was not measured.
void add_recall(nb::dict& dict, const RecallEstimate& recall) {
    if (recall.objects == 0) return;
    dict["recall"] = recall.value;
    dict["recall_low"] = recall.low;
    dict["recall_high"] = recall.high;
    dict["recall_at"] = recall.at;
    dict["recall_objects"] = recall.objects;
}

/// Values of the builders' parameters that are told by a text, or may be.
template <class T>
T field_of(const detail::Field<T>& field, const nb::handle& value) {
    if constexpr (std::is_same_v<T, std::int64_t>)
        if (field.counts_bytes) return bytes_of(field.name, value);
    if constexpr (std::is_arithmetic_v<T>) {
        return value_of<T>(field.name, value);
    } else {
        // torch.device and jax's are told by their text
        const std::string text =
            std::is_same_v<T, Device> ? text_of(nb::str(value)) : value_of<std::string>(field.name, value);
        T parsed{};
        try {
            detail::parse(text, parsed);
        } catch (const InvalidArgument& error) {
            throw InvalidArgument(std::string(field.name) + " = " + text + ": " + error.what());
        }
        return parsed;
    }
}

}  // namespace

std::string text_of(nb::handle str) {
    const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(str.ptr(), "utf-8", "backslashreplace"));
    if (!bytes.is_valid()) throw nb::python_error();
    return {PyBytes_AsString(bytes.ptr()), std::size_t(PyBytes_Size(bytes.ptr()))};
}

nb::str to_str(std::string_view text) {
    const nb::object str = nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "backslashreplace"));
    if (!str.is_valid()) throw nb::python_error();
    return nb::borrow<nb::str>(str);
}

std::string path_of(nb::handle str) {
    const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(str.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    return {PyBytes_AsString(bytes.ptr()), std::size_t(PyBytes_Size(bytes.ptr()))};
}

nb::str path_to_str(const std::string& path) {
    const nb::object str = nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), Py_ssize_t(path.size())));
    if (!str.is_valid()) throw nb::python_error();
    return nb::borrow<nb::str>(str);
}

template <class T>
T value_of(const std::string& name, nb::handle value) {
    if constexpr (std::is_same_v<T, bool>) {
        if (!PyBool_Check(value.ptr()) && kind_of(value) != "bool_" && kind_of(value) != "bool")  // numpy's
            refuse(name, value, "a bool");
        return PyObject_IsTrue(value.ptr()) == 1;
    } else if constexpr (std::is_integral_v<T>) {
        const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
        if (!index.is_valid() || PyBool_Check(value.ptr())) refuse(name, value, "an int");
        const std::string text = text_of(nb::str(index));
        T number{};
        try {
            detail::parse(text, number);
        } catch (const InvalidArgument&) {
            using Limits = std::numeric_limits<T>;
            throw InvalidArgument(name + " = " + text + ", allowed are " + std::to_string(Limits::min()) + " to " +
                                  std::to_string(Limits::max()));
        }
        return number;
    } else if constexpr (std::is_floating_point_v<T>) {
        const double number = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() != nullptr || PyBool_Check(value.ptr())) refuse(name, value, "a number");
        return T(number);
    } else {
        if (!nb::isinstance<nb::str>(value)) refuse(name, value, "a str");
        return text_of(value);
    }
}

template bool value_of(const std::string&, nb::handle);
template int value_of(const std::string&, nb::handle);
template std::int64_t value_of(const std::string&, nb::handle);
template std::uint64_t value_of(const std::string&, nb::handle);
template float value_of(const std::string&, nb::handle);
template double value_of(const std::string&, nb::handle);
template std::string value_of(const std::string&, nb::handle);

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

BuildParams params_of(const nb::dict& given) {
    BuildParams params;
    std::size_t known = 0;
    std::string names;
    detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
        names += (names.empty() ? "" : ", ") + std::string(field.name);
        if (!given.contains(field.name)) return;
        ++known;
        params.*field.member = field_of(field, given[field.name]);
    });
    if (known != given.size())
        for (const auto& [name, value] : given) {
            const std::string text = text_of(nb::str(name));
            if ((", " + names + ", ").find(", " + text + ", ") == std::string::npos)
                throw_type_error("unknown parameter '" + text + "'; known are " + names);
        }
    params.validate();
    return params;
}

nb::dict params_fields() {
    nb::dict fields;
    detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
        std::string help = field.help;
        if (field.zero != nullptr) help += std::string("; 0: ") + field.zero;
        nb::object standard;
        if constexpr (std::is_floating_point_v<T>)
            standard = nb::float_(std::stod(detail::text_of(field.standard())));
        else if constexpr (std::is_arithmetic_v<T>)
            standard = nb::cast(field.standard());
        else
            standard = nb::cast(detail::text_of(field.standard()));
        fields[field.name] = nb::make_tuple(help, standard);
    });
    return fields;
}

nb::dict to_dict(const IterationStats& iteration) {
    nb::dict dict;
    dict["iteration"] = iteration.iteration;
    dict["objects"] = iteration.objects;
    dict["seconds"] = iteration.seconds;
    dict["phi"] = iteration.phi;
    dict["changed"] = iteration.changed;
    dict["offered"] = iteration.offered;
    dict["accepted"] = iteration.accepted;
    dict["distances"] = iteration.distances;
    return dict;
}

nb::dict to_dict(const ShardProgress& progress) {
    nb::dict dict;
    dict["tasks_done"] = progress.tasks_done;
    dict["tasks"] = progress.tasks;
    dict["seconds"] = progress.seconds;
    dict["seconds_left"] = progress.seconds_left < 0 ? nb::none() : nb::object(nb::float_(progress.seconds_left));
    dict["bytes_read"] = progress.bytes_read;
    dict["bytes_written"] = progress.bytes_written;
    dict["host_bytes"] = progress.host_bytes;
    return dict;
}

nb::dict to_dict(const BuildStats& stats) {
    nb::dict dict;
    dict["stop"] = to_str(name_of(stats.stop));
    dict["seconds"] = stats.seconds;
    add_recall(dict, stats.recall);
    if (stats.recall_all.objects != 0) dict["recall_all"] = to_object(stats.recall_all);
    if (stats.recall_added.objects != 0) dict["recall_added"] = to_object(stats.recall_added);
    dict["recall_seconds"] = stats.recall_seconds;
    dict["peak_work_bytes"] = stats.peak_work_bytes;
    dict["device"] = stats.device.name();
    dict["device_reason"] = stats.device_reason;
    dict["threads"] = stats.threads;
    dict["choices"] = choices_of(stats.choices);
    nb::list iterations;
    for (const IterationStats& iteration : stats.iterations) iterations.append(to_dict(iteration));
    dict["iterations"] = iterations;
    return dict;
}

nb::dict to_dict(const ShardedStats& stats) {
    nb::dict dict;
    dict["stop"] = to_str(name_of(stats.stop));
    dict["seconds"] = stats.seconds;
    add_recall(dict, stats.recall);
    dict["recall_seconds"] = stats.recall_seconds;
    dict["shards"] = stats.shards;
    dict["samples"] = stats.samples;
    dict["peak_host_bytes"] = stats.peak_host_bytes;
    dict["peak_work_bytes"] = stats.peak_work_bytes;
    dict["written_bytes"] = stats.written_bytes;
    dict["progress"] = to_dict(stats.progress);
    return dict;
}

nb::dict to_dict(const MemoryPlan& plan) {
    nb::dict dict;
    dict["device"] = plan.device.name();
    dict["choices"] = choices_of(plan.choices);
    dict["why"] = plan.why;
    dict["vectors"] = plan.vectors;
    dict["graph"] = plan.graph;
    dict["work"] = plan.work;
    dict["total"] = plan.total();
    dict["free"] = plan.free;
    if (!plan.predicted.rates.empty()) {
        nb::dict predicted;
        predicted["all_pairs"] = plan.predicted.all_pairs;
        predicted["iterations"] = plan.predicted.iterations;
        predicted["rates"] = plan.predicted.rates;
        dict["predicted"] = predicted;
    }
    return dict;
}

nb::dict to_dict(const ShardedPlan& plan) {
    nb::dict dict;
    dict["builds"] = plan.builds;
    dict["merges"] = plan.merges;
    dict["disk"] = plan.disk;
    dict["work"] = plan.work;
    dict["sample"] = plan.sample;
    dict["host"] = plan.host;
    dict["host_overlapped"] = plan.host_overlapped;
    return dict;
}

nb::object to_object(const RecallEstimate& recall) {
    if (recall.objects == 0) return nb::none();
    nb::dict dict;
    add_recall(dict, recall);
    return dict;
}

void bind_values(nb::module_& module) {
    const auto name = nb::arg("name");
    const auto value = nb::arg("value").none();
    module.def(
        "whole",
        [](const std::string& name, nb::handle value, std::int64_t low, std::optional<std::int64_t> high) {
            const auto number = value_of<std::int64_t>(name, value);
            if (high)
                detail::check_range(name, number, low, *high);
            else if (number < low)
                throw InvalidArgument(name + " = " + std::to_string(number) + ", allowed are " + std::to_string(low) +
                                      " and more");
            return number;
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
    module.def("flag", &value_of<bool>, name, value);
    module.def("bytes_of", &bytes_of, name, value);
}

}  // namespace gnnd::python
