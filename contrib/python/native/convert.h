// SPDX-License-Identifier: MIT
#pragma once
/// \file convert.h
/// Parameters from Python's values, and reports as dicts. Names are those of the tool's JSON.

#include <nanobind/nanobind.h>

#include "gnnd/params.h"
#include "gnnd/sharded.h"
#include "gnnd/stats.h"

namespace gnnd::python {

namespace nb = nanobind;

/// \param given  some of the fields of BuildParams by name; the others have their default
/// \throws nb::type_error for values of another kind and for names that are no field, InvalidArgument for values out
///         of range
BuildParams params_of(const nb::dict& given);

/// Every field by name: (help, default).
nb::dict params_fields();

nb::dict to_dict(const IterationStats& iteration);
nb::dict to_dict(const ShardProgress& progress);
nb::dict to_dict(const BuildStats& stats);
nb::dict to_dict(const ShardedStats& stats);
nb::dict to_dict(const MemoryPlan& plan);
nb::dict to_dict(const ShardedPlan& plan);
/// None where nothing was measured.
nb::object to_object(const RecallEstimate& recall);

}  // namespace gnnd::python
