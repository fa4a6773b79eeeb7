// SPDX-License-Identifier: MIT
#pragma once
/// \file shards.h
/// Several processes that build one graph in shards take these from the library: the manifest, the shards' files, and
/// the merge of a pair.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_shards(nanobind::module_& module);

}  // namespace gnnd::python
