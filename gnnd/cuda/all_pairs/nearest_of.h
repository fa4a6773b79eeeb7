// SPDX-License-Identifier: MIT
#pragma once
/// \file nearest_of.h
/// The device memory of nearest_of() (backend.h).

#include <cstddef>

#include "gnnd/metric.h"
#include "gnnd/vectors.h"

namespace gnnd::cuda {

/// \param vectors, sample  n, d and dtype count; the data may be null
std::size_t bytes_of_nearest_of(const VectorView& vectors, std::int64_t sample, int k, Metric metric);

}  // namespace gnnd::cuda
