// SPDX-License-Identifier: MIT
#pragma once
/// \file on_a_line.h
/// Objects that are the numbers from 0 on.

#include <cmath>
#include <cstdint>
#include <memory>

#include "gnnd/detail/beam_search.h"

namespace gnnd::test {

/// Of numbers on a line.
class OnALine : public detail::ObjectDistances {
  public:
    float between(std::int32_t a, std::int32_t b) override { return std::abs(float(a - b)); }
    std::unique_ptr<ObjectDistances> clone() const override { return std::make_unique<OnALine>(); }
};

}  // namespace gnnd::test
