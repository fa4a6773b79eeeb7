// SPDX-License-Identifier: MIT
#pragma once
/// \file manifest_json.h
/// The parts of a manifest as JSON. Readers throw nlohmann's exceptions for what is no such part, and InvalidArgument
/// for values that are none.

#include <nlohmann/json.hpp>
#include <optional>

#include "gnnd/shards/manifest.h"

namespace gnnd::shards {

using Json = nlohmann::ordered_json;

std::string to_hex(std::uint64_t value);

Json to_json(const std::optional<FileRecord>& file);
std::optional<FileRecord> file_of(const Json& json);

Json to_json(const BaseRecord& base);
BaseRecord base_of(const Json& json);

Json to_json(const RecallEstimate& recall);
RecallEstimate recall_of(const Json& json);

/// Every parameter that decides the graph.
Json to_json(const BuildParams& params);
/// An older version may not have known all of them; then it built with what is their default now.
BuildParams params_of(const Json& json);

}  // namespace gnnd::shards
