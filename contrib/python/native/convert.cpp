// SPDX-License-Identifier: MIT
#include "convert.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "gnnd/detail/params_table.h"
#include "gnnd/error.h"
#include "values.h"

namespace gnnd::python {

namespace {

nb::dict choices_of(const Choices& choices) {
    nb::dict dict;
    dict["exhaustive"] = choices.exhaustive;
    dict["list_size"] = choices.list_size;
    dict["samples"] = choices.samples;
    dict["trees"] = choices.trees;
    dict["capacity"] = choices.capacity;
    dict["codes"] = detail::text_of(choices.codes).c_str();
    dict["parts"] = choices.parts;
    dict["passes"] = choices.passes;
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

/// The value of a builder's parameter: a number as Python has it, what has a name by its text.
template <class T>
T field_of(const detail::Field<T>& field, const nb::handle& value) {
    if constexpr (std::is_same_v<T, std::int64_t>)
        if (field.counts_bytes) return bytes_of(field.name, value);
    if constexpr (std::is_arithmetic_v<T>) {
        return value_of<T>(field.name, value, field.low, field.high);
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
                throw nb::type_error(("unknown parameter '" + text + "'; known are " + names).c_str());
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
    dict["unresolved"] = stats.unresolved;
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
