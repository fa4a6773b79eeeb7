// SPDX-License-Identifier: MIT
#pragma once
/// The command-line tool, in the process of `python -m gnnd`.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_tool(nanobind::module_& module);

}  // namespace gnnd::python
