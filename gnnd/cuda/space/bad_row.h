// SPDX-License-Identifier: MIT
#pragma once
/// \file bad_row.h
/// The error for a vector that no build can work with.

#include <string>

#include "gnnd/cuda/space/space.h"
#include "gnnd/detail/input.h"
#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::cuda {

/// Copies the row to the host, where the CPU's check says what is wrong with it in the CPU's words.
/// \param who     "append: of the added vectors: " or nothing
/// \param vectors on the host or on a device
/// \param row     of the vectors
/// \param number  by which the message calls it
[[noreturn]] void throw_bad_row(const std::string& who, const VectorView& vectors, std::int64_t row,
                                std::int64_t number, Metric metric);

/// \param info  of the prepared vectors of the input
/// \throws InvalidArgument for the first vector that the metric cannot work with
void check_rows(const SpaceInfo& info, const detail::Input& input, Metric metric);

}  // namespace gnnd::cuda
