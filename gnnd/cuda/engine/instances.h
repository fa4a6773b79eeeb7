// SPDX-License-Identifier: MIT
#pragma once
/// \file instances.h
/// The engines' templates. Each is instantiated in a file of its own, which CMake makes from engine.cu.in and
/// variants.cu.in for the arithmetics that gnnd/CMakeLists.txt lists; whoever forgets one there is told so by the
/// linker.

#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

template <PackedType P>
struct TensorProducts;
template <PackedType P, class M>
struct ScalarSums;

/// \tparam Arithmetic  TensorProducts or ScalarSums
template <class Arithmetic>
const Engine& engine_of();

/// Engine::cross_match for Update::selective and Update::all.
template <class Arithmetic>
void cross_match_variant(const Points& points, const CrossMatchArgs& args, cudaStream_t stream);

}  // namespace gnnd::cuda
