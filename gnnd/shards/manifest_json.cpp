// SPDX-License-Identifier: MIT
#include "gnnd/shards/manifest_json.h"

#include <charconv>
#include <cstdio>
#include <set>
#include <string>
#include <type_traits>

#include "gnnd/detail/params_table.h"
#include "gnnd/error.h"

namespace gnnd::shards {
namespace {

/// Calls f with the table's entry of every parameter that decides the graph.
template <class F>
void for_graph_fields(const F& f) {
    detail::for_each_field([&](const auto& field) {
        if (field.decides_graph) f(field);
    });
}

template <class T>
Json value_to_json(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
        return value;
    else
        return detail::text_of(value);
}

template <class T>
void assign(const Json& json, T& value) {
    if constexpr (std::is_arithmetic_v<T>)
        value = json.get<T>();
    else
        detail::parse(json.get<std::string>(), value);
}

std::uint64_t from_hex(const Json& json) {
    const auto text = json.get<std::string>();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size())
        throw InvalidArgument("'" + text + "' is not hexadecimal");
    return value;
}

}  // namespace

std::string to_hex(std::uint64_t value) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}

Json to_json(const std::optional<FileRecord>& file) {
    if (!file) return nullptr;
    return {{"name", file->name}, {"bytes", file->bytes}, {"checksum", to_hex(file->checksum)}};
}

std::optional<FileRecord> file_of(const Json& json) {
    if (json.is_null()) return std::nullopt;
    return FileRecord{json.at("name"), json.at("bytes"), from_hex(json.at("checksum"))};
}

Json to_json(const BaseRecord& base) {
    Json json = Json::object();
    if (base.format) json = {{"path", base.path}, {"format", name_of(*base.format)}};
    json.update({{"n", base.n}, {"d", base.d}, {"dtype", name_of(base.dtype)}});
    if (base.format) json["bytes"] = base.bytes;
    if (base.checksum) json["checksum"] = to_hex(*base.checksum);
    if (base.format) json["modified"] = base.modified;
    return json;
}

BaseRecord base_of(const Json& json) {
    BaseRecord base;
    if (json.contains("format")) {
        base.path = json.at("path");
        base.format = io::parse_vector_format(json.at("format").get<std::string>());
        base.bytes = json.at("bytes");
        base.modified = json.at("modified");
    }
    base.n = json.at("n");
    base.d = json.at("d");
    base.dtype = parse_dtype(json.at("dtype").get<std::string>());
    if (json.contains("checksum")) base.checksum = from_hex(json.at("checksum"));
    return base;
}

Json to_json(const RecallEstimate& recall) {
    return {{"value", recall.value},
            {"low", recall.low},
            {"high", recall.high},
            {"at", recall.at},
            {"objects", recall.objects}};
}

RecallEstimate recall_of(const Json& json) {
    return {json.at("value"), json.at("low"), json.at("high"), json.at("at"), json.at("objects")};
}

Json to_json(const BuildParams& params) {
    Json json = Json::object();
    for_graph_fields([&](const auto& field) { json[field.name] = value_to_json(field.of(params)); });
    return json;
}

BuildParams params_of(const Json& json) {
    BuildParams params;
    std::set<std::string> known;
    for_graph_fields([&](const auto& field) {
        known.insert(field.name);
        if (json.contains(field.name)) assign(json.at(field.name), params.*field.member);
    });
    for (const auto& [name, value] : json.items())
        if (!known.contains(name)) throw InvalidArgument("this library knows no parameter '" + name + "'");
    params.validate();
    return params;
}

}  // namespace gnnd::shards
