// SPDX-License-Identifier: MIT
#pragma once
/// \file links.h
/// search_links.h for Python.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_links(nanobind::module_& module);

}  // namespace gnnd::python
