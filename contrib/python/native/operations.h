// SPDX-License-Identifier: MIT
#pragma once
/// \file operations.h
/// The operations of gnnd/operations.h for Python.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_operations(nanobind::module_& module);

}  // namespace gnnd::python
