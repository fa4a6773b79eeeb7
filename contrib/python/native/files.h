// SPDX-License-Identifier: MIT
#pragma once
/// \file files.h
/// Graph files, vector files and graphs in shards for Python.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_files(nanobind::module_& module);

}  // namespace gnnd::python
