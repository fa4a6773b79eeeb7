// SPDX-License-Identifier: MIT
#pragma once
/// \file build.h
/// The entry points of builder.h and merge.h for Python.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_build(nanobind::module_& module);

}  // namespace gnnd::python
