// SPDX-License-Identifier: MIT
#include "convert.h"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>
#include <type_traits>

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

/// A value as the command line would spell it, so that both read it the same way.
template <class T>
std::string spelled(const char* name, const nb::handle& value) {
    const auto refuse = [&](const char* expected) {
        throw_type_error(std::string(name) + " must be " + expected + ", not " + kind_of(value));
    };
    if constexpr (std::is_same_v<T, bool>) {
        if (!PyBool_Check(value.ptr())) refuse("a bool");
        return value.ptr() == Py_True ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
        const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
        if (!index.is_valid() || PyBool_Check(value.ptr())) {
            PyErr_Clear();
            refuse("an int");
        }
        return nb::cast<std::string>(nb::str(index));
    } else if constexpr (std::is_floating_point_v<T>) {
        const double number = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() != nullptr || PyBool_Check(value.ptr())) {
            PyErr_Clear();
            refuse("a number");
        }
        return detail::text_of(T(number));
    } else if constexpr (std::is_same_v<T, Device>) {
        return nb::cast<std::string>(nb::str(value));  // torch.device and jax's are told by their text
    } else {
        if (!nb::isinstance<nb::str>(value)) refuse("a str");
        return nb::cast<std::string>(value);
    }
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

nb::str to_str(std::string_view text) {
    return nb::str(text.data(), text.size());
}

}  // namespace

BuildParams params_of(const nb::dict& given) {
    BuildParams params;
    std::size_t known = 0;
    std::string names;
    detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
        names += (names.empty() ? "" : ", ") + std::string(field.name);
        if (!given.contains(field.name)) return;
        ++known;
        const std::string text = spelled<T>(field.name, given[field.name]);
        try {
            detail::parse(text, params.*field.member);
        } catch (const InvalidArgument& error) {
            throw InvalidArgument(std::string(field.name) + " = " + text + ": " + error.what());
        }
    });
    if (known != given.size())
        for (const auto& [name, value] : given) {
            const auto text = nb::cast<std::string>(nb::str(name));
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

}  // namespace gnnd::python
