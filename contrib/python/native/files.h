// SPDX-License-Identifier: MIT
#pragma once
/// \file files.h
/// Graph files, vector files and graphs in shards for Python.

#include <nanobind/nanobind.h>

#include "gnnd/io/base_identity.h"
#include "gnnd/stats.h"

namespace gnnd::python {

/// (n, d, dtype, checksum).
nanobind::tuple to_tuple(const io::BaseIdentity& base);
/// \param given  as to_object(RecallEstimate) gives it, or None
RecallEstimate recall_of(const nanobind::object& given);

void bind_files(nanobind::module_& module);

}  // namespace gnnd::python
