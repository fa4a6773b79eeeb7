// SPDX-License-Identifier: MIT
#pragma once
/// \file exact_plan.h
/// The device memory of an exact graph.

#include <cstddef>

namespace gnnd::cuda {

struct ExactPlan {
    std::size_t vectors = 0, graph = 0;
    std::size_t total = 0;  ///< bytes at any time, those of vectors and graph among them
};

}  // namespace gnnd::cuda
