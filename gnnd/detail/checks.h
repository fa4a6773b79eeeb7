// SPDX-License-Identifier: MIT
#pragma once
/// \file checks.h
/// Checks of the entry points' arguments, and the choice of a device.

#include <cstdint>
#include <initializer_list>
#include <string>

#include "gnnd/detail/numbers.h"
#include "gnnd/error.h"
#include "gnnd/params.h"
#include "gnnd/resources.h"
#include "gnnd/vectors.h"

namespace gnnd::detail {

/// Throws InvalidArgument that names the value unless low <= value <= high.
template <class T>
void check_range(const std::string& name, T value, T low, T high) {
    if (!(value >= low && value <= high))  // negated, so that NaN fails
        throw InvalidArgument(name + " = " + number_text(value) + ", allowed are " + number_text(low) + " to " +
                              number_text(high));
}
/// The same of a field of parameters. No text is made of one that is in range.
template <class T>
void check_range(const char* parameters, const char* field, T value, T low, T high) {
    if (!(value >= low && value <= high)) check_range(std::string(parameters) + "::" + field, value, low, high);
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
