// SPDX-License-Identifier: MIT
#pragma once
/// \file engine.cuh
/// Fills in the table of engine.h for one arithmetic.

#include <algorithm>

#include "gnnd/cuda/append/find_nearest.cuh"
#include "gnnd/cuda/engine/cross_match_launch.cuh"
#include "gnnd/cuda/engine/instances.h"
#include "gnnd/cuda/init/assign_to_pivots.cuh"
#include "gnnd/cuda/init/init_neighbors.cuh"
#include "gnnd/cuda/init/join_window.cuh"
#include "gnnd/cuda/links/prune.cuh"

namespace gnnd::cuda {

/// Calls start(std::integral_constant<int, KTiles>()): rows of one to Most tiles, which shared memory holds as a whole,
/// have kernels of their own where sums come from tensor cores; 0 for others.
template <class Arithmetic, int Most, int KTiles = 1, class Start>
void start_for_rows(const Points& points, const Start& start) {
    if constexpr (!Arithmetic::kTensor || KTiles > Most)
        start(std::integral_constant<int, 0>());
    else if (points.row_bytes <= KTiles * kTileBytes)
        start(std::integral_constant<int, KTiles>());
    else
        start_for_rows<Arithmetic, Most, KTiles + 1>(points, start);
}

template <class Arithmetic>
std::int64_t window_size(const Points& points) {
    return Arithmetic::kTensor && points.row_bytes <= kTileBytes && !points.pairs.all() ? kWideWindow : kWindow;
}

template <class Arithmetic>
void assign_to_pivots(const Points& points, const AssignToPivotsArgs& args, cudaStream_t stream) {
    start_for_rows<Arithmetic, 3>(points, [&]<int KTiles>(std::integral_constant<int, KTiles>) {
        if constexpr (KTiles == 0) {
            launch("assign_to_pivots", assign_to_pivots_kernel<Arithmetic>, blocks_for(points.n, kBlockRows),
                   2 * kBlockRows, 0, stream, points, args);
        } else {
            using Shape = WholeRows<KTiles>;
            launch("assign_to_pivots", assign_whole_rows_kernel<Arithmetic, KTiles>, blocks_for(points.n, Shape::kRows),
                   2 * Shape::kRows, KTiles * Shape::kStageBytes, stream, points, args);
        }
    });
}

template <class Arithmetic>
void join_window(const Points& points, const JoinWindowArgs& args, cudaStream_t stream) {
    const auto start = [&]<int KTiles, bool Across>(WindowShape<KTiles, Across>) {
        using Shape = WindowShape<KTiles, Across>;
        launch("join_window", join_window_kernel<Arithmetic, KTiles, Across>, blocks_for(points.n, Shape::kRows),
               Shape::kThreads, Shape::kBytes, stream, points, args);
    };
    start_for_rows<Arithmetic, 3>(points, [&]<int KTiles>(std::integral_constant<int, KTiles>) {
        constexpr bool kAcross = KTiles == 1;  // longer rows of two sets have no kernel of their own
        if (points.pairs.all())
            start(WindowShape<KTiles, false>());
        else
            start(WindowShape<int(kAcross), kAcross>());
    });
}

template <class Arithmetic>
void init_neighbors(const Points& points, const InitNeighborsArgs& args, cudaStream_t stream) {
    const auto start = [&]<class Source>(Source) {
        launch("init_neighbors", init_neighbors_kernel<Arithmetic, Source>, blocks_for(points.n, kInitWarps),
               kInitWarps * kWarp, 0, stream, points, args);
    };
    if (args.graph != nullptr) return start(GivenGraph());
    visit(args.init, [&]<class I>(I init) {
        if constexpr (!I::trees) start(init);
    });
}

template <class Arithmetic>
void cross_match(const Points& points, const CrossMatchArgs& args, cudaStream_t stream) {
    if (args.variant.update != Update::automatic) {
#ifdef GNND_CUDA_VARIANTS
        cross_match_variant<Arithmetic>(points, args, stream);
#endif
        return;
    }
    const BufferedUpdate buffered{reinterpret_cast<const float2*>(args.lists.bounds), args.variant.filter,
                                  args.variant.candidates};
    const CompleteUpdate complete{buffered, {args.lists, args.variant.locks, args.counters}};
    const auto start = [&]<int KTiles>(std::integral_constant<int, KTiles>) {
        if (args.variant.locks != nullptr)
            launch_cross_match<Arithmetic, KTiles>(points, args, complete, stream);
        else
            launch_cross_match<Arithmetic, KTiles>(points, args, buffered, stream);
    };
    start_for_rows<Arithmetic, 2>(points, start);
}

template <class Arithmetic>
void prune(const Points& points, const PruneArgs& args, cudaStream_t stream) {
    const int entries = int(std::min<std::int64_t>(args.k, kMaxPruned));
    const auto start = [&]<int T>(std::integral_constant<int, T>) {
        launch("prune", prune_kernel<Arithmetic, T>, unsigned(args.count), 2 * T, 0, stream, points, args, entries);
    };
    if (entries <= 32)
        start(std::integral_constant<int, 32>());
    else if (entries <= 64)
        start(std::integral_constant<int, 64>());
    else
        start(std::integral_constant<int, kMaxPruned>());
}

template <class Arithmetic>
void find_nearest(const Points& points, const FindNearestArgs& args, cudaStream_t stream) {
    const dim3 blocks(blocks_for(args.rows, kBlockRows), blocks_for(args.columns, kColumnGroup));
    find_nearest_kernel<Arithmetic><<<blocks, 2 * kBlockRows, 0, stream>>>(points, args);
    GNND_LAUNCHED("find_nearest_kernel");
}

template <class Arithmetic>
const Engine& engine_of() {
    static const Engine engine = [] {
        Engine made{.window_size = window_size<Arithmetic>,
                    .assign_to_pivots = nullptr,
                    .join_window = join_window<Arithmetic>,
                    .init_neighbors = init_neighbors<Arithmetic>,
                    .cross_match = cross_match<Arithmetic>,
                    .prune = prune<Arithmetic>,
                    .find_nearest = find_nearest<Arithmetic>};
        if constexpr (Arithmetic::kTensor) made.assign_to_pivots = assign_to_pivots<Arithmetic>;
        return made;
    }();
    return engine;
}

}  // namespace gnnd::cuda
