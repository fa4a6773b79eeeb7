// SPDX-License-Identifier: MIT
#pragma once
/// \file checks.h
/// Checks of the entry points' arguments, and the choice of a device.

#include <cstdint>
#include <initializer_list>
#include <string>

#include "gnnd/error.h"
#include "gnnd/params.h"
#include "gnnd/resources.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

/// Throws InvalidArgument that names the field of the parameters unless low <= value <= high.
template <class T>
void check_range(const char* parameters, const char* field, T value, T low, T high) {
    if (!(value >= low && value <= high))  // negated, so that NaN fails
        throw InvalidArgument(std::string(parameters) + "::" + field + " = " + std::to_string(value) +
                              ", allowed are " + std::to_string(low) + " to " + std::to_string(high));
}

/// The type, n and d. \param least  fewest vectors that are allowed
void check_dimensions(const VectorView& vectors, std::int64_t least = 2);
/// And that there are such vectors.
void check_shape(const VectorView& vectors, std::int64_t least = 2);
void check_k(std::int64_t k);
/// Every id in [least, n).
void check_ids(const std::int32_t* ids, std::int64_t count, std::int32_t least, std::int64_t n, const char* what);
/// No pointer to the memory of a GPU other than the device.
void check_reach(const Device& device, std::initializer_list<const void*> pointers);

/// The GPU or the CPU. Where `automatic` finds no GPU, `reason` says why. \throws Unavailable
Device choose(const Device& wanted, std::string* reason = nullptr);

/// The given ones, or the heap.
Resources& or_heap(Resources* resources);

}  // namespace gnnd::detail
