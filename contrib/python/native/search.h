// SPDX-License-Identifier: MIT
#pragma once
/// \file search.h
/// The nearest objects of vectors that are not in the set.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_search(nanobind::module_& module);

}  // namespace gnnd::python
