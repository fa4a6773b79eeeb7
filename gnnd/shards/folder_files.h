// SPDX-License-Identifier: MIT
#pragma once
/// \file folder_files.h
/// The files in the folder of a graph in shards: their names, and those that a manifest has.

#include <string>
#include <vector>

#include "gnnd/shards/manifest.h"

namespace gnnd::shards {

/// The rows of the base in the order of the shards.
inline constexpr const char* kOrderName = "order.ibin";

/// The vectors in that order.
std::string vectors_name(DType dtype);

/// Of a shard's graph. \param what  local, lists or result
std::string file_name(const char* what, int shard, int version);

/// True where a build may have written a file of this name, whole or not.
bool is_ours(const std::string& name);

/// The records of all files.
std::vector<FileRecord> files_of(const Manifest& manifest);

/// The folder, once it is there and durable. \throws IoError
std::string prepared(const std::string& path);

}  // namespace gnnd::shards
