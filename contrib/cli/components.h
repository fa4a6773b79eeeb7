// SPDX-License-Identifier: MIT
#pragma once
/// Conversion between the element types of vector files.

#include <cstddef>
#include <cstdint>
#include <string>

#include "gnnd/dtype.h"

namespace cli {

/// Converts `count` components. \return -1, or the first one whose value the new type cannot hold exactly (f16 rounds,
/// and fails only where a finite value would become infinite)
std::int64_t convert_components(const void* in, gnnd::DType from, void* out, gnnd::DType to, std::int64_t count);

/// The component as text, for messages.
std::string component_text(const void* components, gnnd::DType dtype, std::int64_t i);

}  // namespace cli
