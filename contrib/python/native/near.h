// SPDX-License-Identifier: MIT
#pragma once
/// \file near.h
/// Several processes that build one graph by the plan `near` take its rules from here: the order of the base, the
/// borders of shards, what is merged next, and the way back to the rows of the base.

#include <nanobind/nanobind.h>

namespace gnnd::python {

void bind_near(nanobind::module_& module);

}  // namespace gnnd::python
