// SPDX-License-Identifier: MIT
#pragma once
/// \file manifest.h
/// The manifest of a graph in shards, which tells of base, parameters and files.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_manifest(nanobind::module_& module);

}  // namespace gnnd::python
