// SPDX-License-Identifier: MIT
#pragma once
/// \file shards.h
/// Several processes that build one graph in shards take these from the library: the shards' files, and the merge of a
/// pair. Their manifest is in manifest.h.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "gnnd/io/graph_file.h"

namespace gnnd::python {

/// A file of rows, provided that it is the one that was recorded. \throws IoError where it is another
io::GraphFile recorded_file(const std::string& path, std::uint64_t bytes, std::uint64_t checksum, std::int64_t n,
                            std::int64_t k, std::int64_t objects);

void bind_shards(nanobind::module_& module);

}  // namespace gnnd::python
