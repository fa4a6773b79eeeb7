// SPDX-License-Identifier: MIT
#pragma once
/// \file lists.h
/// The library's lists for Python: metrics with their traits, types of components, formats of vector files.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_lists(nanobind::module_& module);

}  // namespace gnnd::python
