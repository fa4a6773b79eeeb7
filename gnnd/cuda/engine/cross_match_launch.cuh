// SPDX-License-Identifier: MIT
#pragma once
/// \file cross_match_launch.cuh
/// Starts the cross-match with an update.

#include <utility>

#include "gnnd/cuda/cross_match.cuh"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/engine/engine.h"

namespace gnnd::cuda {

/// \tparam KTiles  of CrossMatch
template <class Arithmetic, int KTiles, class Update>
void launch_cross_match(const Points& points, const CrossMatchArgs& args, const Update& update, cudaStream_t stream) {
    constexpr bool kOwn = Update::kKept > 1;  // the paper's variants have neither wide kernels nor those of NEW alone
    const auto start = [&]<int T, int Chunk, int Kinds>(std::integer_sequence<int, T, Chunk, Kinds>) {
        using Match = CrossMatch<Arithmetic, T, KTiles, Update, Chunk, Kinds>;
        launch("cross_match", cross_match_kernel<Match>, blocks_for(points.n - args.first, args.stride), 2 * T,
               Match::kBytes, stream, points, args.samples, update, args.visit, args.first, args.stride, args.stop,
               args.counters);
    };
    const auto start_for = [&]<int T>(std::integral_constant<int, T>) {
        constexpr int kWide = kOwn && Arithmetic::kTensor && T == 64 ? 64 : 32, kNew = kOwn ? 1 : 2;
        // Of two tiles' rows shared memory has room for no more blocks with 32 columns at a time.
        constexpr int kNarrow = KTiles == 2 ? kWide : 32;
        if (args.only_new)
            start(std::integer_sequence<int, T, 32, kNew>());
        else if (args.many_samples)
            start(std::integer_sequence<int, T, kWide, 2>());
        else
            start(std::integer_sequence<int, T, kNarrow, 2>());
    };
    if (args.samples.p <= 16)
        start_for(std::integral_constant<int, 32>());
    else if (args.samples.p <= 32)
        start_for(std::integral_constant<int, 64>());
    else
        start_for(std::integral_constant<int, 128>());
}

}  // namespace gnnd::cuda
