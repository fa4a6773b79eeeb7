#pragma once
/// \file engine.cuh
/// Fills in the table of launch.h for one engine. Each engine is compiled in a file of its own.

#include <algorithm>

#include "gnnd/cuda/algorithm.h"
#include "gnnd/cuda/cross_match.cuh"
#include "gnnd/cuda/device/launch.cuh"
#include "gnnd/cuda/init.cuh"
#include "gnnd/cuda/links/prune.cuh"
#include "gnnd/cuda/update.cuh"

namespace gnnd::cuda {

template <class E, bool kHasOneSlab>
Engine make_engine() {
    Engine engine{};
    engine.leaf = [](const Points& points) {
        return std::int64_t(kHasOneSlab && points.row_bytes <= kSlab && !points.pairs.all() ? kWideWindow : kWindow);
    };
    engine.meet = [](const Points& points, const u32* order, const Candidates& candidates, int at, int take,
                     cudaStream_t stream) {
        const auto start = [&]<bool OneSlab, bool Across>(Meeting<OneSlab, Across>) {
            using Shape = Meeting<OneSlab, Across>;
            launch("meet", meet_kernel<E, OneSlab, Across>, blocks_for(points.n, Shape::kRows), Shape::kThreads,
                   Shape::kBytes, stream, points, order, candidates, at, take);
        };
        if (!kHasOneSlab || points.row_bytes > kSlab)
            start(Meeting<false, false>());
        else if (points.pairs.all())
            start(Meeting<kHasOneSlab, false>());
        else
            start(Meeting<kHasOneSlab, kHasOneSlab>());
    };
    engine.seed = [](const Points& points, const Candidates& candidates, const std::int32_t* graph, int width,
                     int first, int count, u32 seed, bool ordered, cudaStream_t stream) {
        launch("seed", seed_kernel<E>, blocks_for(points.n, 8), 8 * kWarp, 0, stream, points, candidates, graph, width,
               first, count, seed, ordered);
    };
    engine.cross_match = [](const Points& points, const Samples& samples, const Lists& lists, const Variant& variant,
                            const u32* visit, std::int64_t first, int stride, const Control* control,
                            Counters* counters, cudaStream_t stream) {
        const unsigned blocks = blocks_for(points.n - first, stride);
        const auto start_as = [&]<int T, bool OneSlab, class U>(const U& update) {
            launch("cross_match", cross_match_kernel<E, T, OneSlab, U>, blocks, 2 * T,
                   cross_match_bytes<E, T, OneSlab, U>(), stream, points, samples, update, visit, first, stride,
                   control, counters);
        };
        const auto start = [&]<int T>(std::integral_constant<int, T>) {
            const bool one_slab = kHasOneSlab && points.row_bytes <= kSlab;
            const AppendUpdate append{lists.bounds, variant.filter, variant.candidates};
            const LockedLists locked{lists, variant.locks, counters};
            if (variant.update == Update::all)
                start_as.template operator()<T, false>(SortUpdate{locked});
            else if (variant.update == Update::selective)
                start_as.template operator()<T, false>(LockUpdate{locked});
            else if (variant.locks != nullptr)
                one_slab ? start_as.template operator()<T, kHasOneSlab>(CompleteUpdate{append, locked})
                         : start_as.template operator()<T, false>(CompleteUpdate{append, locked});
            else
                one_slab ? start_as.template operator()<T, kHasOneSlab>(append)
                         : start_as.template operator()<T, false>(append);
        };
        if (samples.p <= 16)
            start(std::integral_constant<int, 32>());
        else if (samples.p <= 32)
            start(std::integral_constant<int, 64>());
        else
            start(std::integral_constant<int, 128>());
    };
    engine.prune = [](const Points& points, const std::int32_t* graph, std::int64_t k, const Links& links,
                      std::int64_t first, std::int64_t count, cudaStream_t stream) {
        const int entries = int(std::min<std::int64_t>(k, kMaxPruned));
        const auto start = [&]<int T>(std::integral_constant<int, T>) {
            launch("prune", prune_kernel<E, T>, unsigned(count), 2 * T, 0, stream, points, graph, k, entries, links,
                   first);
        };
        if (entries <= 32)
            start(std::integral_constant<int, 32>());
        else if (entries <= 64)
            start(std::integral_constant<int, 64>());
        else
            start(std::integral_constant<int, kMaxPruned>());
    };
    return engine;
}

/// An engine that can divide as well.
template <class E>
Engine make_tensor_engine() {
    Engine engine = make_engine<E, true>();
    engine.divide = [](const Points& points, const u32* order, std::int64_t window, int pivots, u32 seed, u32* keys,
                       cudaStream_t stream) {
        launch("divide", divide_kernel<E>, blocks_for(points.n, kBlockRows), 2 * kBlockRows, 0, stream, points, order,
               window, pivots, seed, keys);
    };
    return engine;
}

}  // namespace gnnd::cuda
