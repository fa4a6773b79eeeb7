// SPDX-License-Identifier: MIT
#pragma once
/// \file cross_match_launch.cuh
/// Starts the cross-match with an update.

#include <utility>

#include "gnnd/cuda/cross_match.cuh"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

template <class Arithmetic, bool ShortRows, class Update>
void launch_cross_match(const Points& points, const CrossMatchArgs& args, const Update& update, cudaStream_t stream) {
    const auto start = [&]<int T, int Chunk>(std::integer_sequence<int, T, Chunk>) {
        using Match = CrossMatch<Arithmetic, T, ShortRows, Update, Chunk>;
        launch("cross_match", cross_match_kernel<Match>, blocks_for(points.n - args.first, args.stride), 2 * T,
               Match::kBytes, stream, points, args.samples, update, args.visit, args.first, args.stride, args.stop,
               args.counters);
    };
    constexpr int kWide = Arithmetic::kTensor && Update::kKept > 1 ? 64 : 32;
    if (args.samples.p <= 16)
        start(std::integer_sequence<int, 32, 32>());
    else if (args.samples.p > 32)
        start(std::integer_sequence<int, 128, 32>());
    else if (args.many_samples)
        start(std::integer_sequence<int, 64, kWide>());
    else
        start(std::integer_sequence<int, 64, 32>());
}

}  // namespace gnnd::cuda
