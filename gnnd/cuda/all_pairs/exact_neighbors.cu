// SPDX-License-Identifier: MIT
// The exact neighbours of chosen objects on a GPU; of a set that it does not hold in parts, one after the other.
#include <algorithm>
#include <string>
#include <vector>

#include "gnnd/cpu/backend.h"
#include "gnnd/cuda/all_pairs/exhaustive.h"
#include "gnnd/cuda/all_pairs/nearest_of.h"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/callbacks.h"
#include "gnnd/cuda/runtime/wait.h"
#include "gnnd/cuda/sweep/sweep.h"
#include "gnnd/cuda/sweep/swept_set.h"
#include "gnnd/detail/fold.h"
#include "gnnd/device.h"
#include "gnnd/error.h"

namespace gnnd::cuda {
namespace {

/// Queries that are compared at a time.
constexpr std::int64_t kMostAtOnce = 8192, kLeastAtOnce = 256;

std::int64_t halved(std::int64_t queries) {
    return queries / 2;
}

/// The largest part, for as many queries at once as may be.
struct Parts {
    std::int64_t rows = 0, at_once = 0;

    Parts(const VectorView& vectors, std::int64_t count, const BuildParams& params, const MemoryLimits& limits) {
        std::size_t bytes = 0;
        const auto fits = [&] { return limits.hold(bytes); };
        const auto lay_out = [&](std::int64_t queries) {
            at_once = queries;
            lay_out_to_fit(
                vectors.n, kMostOnHost,
                [&](std::int64_t of_part) {
                    rows = of_part;
                    const VectorView part{nullptr, rows, vectors.d, vectors.dtype, 0};
                    bytes = bytes_of_nearest_of(part, at_once, params.k, params.metric);
                },
                fits, [](std::int64_t of_part) { return of_part - of_part / 8; });
        };
        lay_out_to_fit(std::min(count, kMostAtOnce), kLeastAtOnce, lay_out, fits, halved);
        limits.check("exact_neighbors", bytes);
    }
};

/// Vectors of objects on the host. \throws InvalidArgument for one that the metric cannot work with
std::vector<std::byte> rows_of(const VectorView& vectors, const std::int32_t* objects, std::int64_t count,
                               Metric metric) {
    const std::size_t row = std::size_t(vectors.d) * size_of(vectors.dtype);
    std::vector<std::byte> rows(std::size_t(count) * row);
    for (std::int64_t i = 0; i < count; ++i) {
        std::byte* const to = rows.data() + std::size_t(i) * row;
        gnnd::copy_to_host({vectors.row(objects[i]), 1, vectors.d, vectors.dtype, 0}, to);
        const std::string fault = cpu::fault_of_row({to, 1, vectors.d, vectors.dtype, 0}, metric);
        if (!fault.empty()) throw InvalidArgument("vector " + std::to_string(objects[i]) + " " + fault);
    }
    return rows;
}

KnnGraph search_parts(const VectorView& vectors, const std::int32_t* queries, std::int64_t count, const Parts& parts,
                      const BuildParams& params, const Callbacks& callbacks, Resources& resources,
                      cudaStream_t stream) {
    KnnGraph graph(count, params.k, params.metric);
    const std::int64_t part_count = (vectors.n + parts.rows - 1) / parts.rows;
    for (std::int64_t begin = 0; begin < count; begin += parts.at_once) {
        const std::int64_t size = std::min(parts.at_once, count - begin), entry = begin * params.k;
        const std::vector<std::byte> rows = rows_of(vectors, queries + begin, size, params.metric);
        std::vector<std::int32_t> selves(size);
        for (std::int64_t i = 0; i < part_count; ++i) {
            const std::int64_t first = vectors.n * i / part_count, last = vectors.n * (i + 1) / part_count;
            std::transform(queries + begin, queries + begin + size, selves.begin(), [&](std::int32_t query) {
                return query >= first && query < last ? std::int32_t(query - first) : -1;
            });
            const VectorView part{vectors.row(first), last - first, vectors.d, vectors.dtype, vectors.stride};
            const KnnGraph nearest = nearest_of(part, {rows.data(), size, vectors.d, vectors.dtype, 0}, selves.data(),
                                                params.k, params.metric, params.device.index, resources, first);
            detail::fold(nearest, {0, std::int32_t(part.n), first}, params.k, graph.ids() + entry,
                         graph.distances() + entry, params.threads);
            await(stream, callbacks);
        }
    }
    return graph;
}

}  // namespace

KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& params, const Callbacks& given, Resources& resources) {
    const UseDevice device(params.device.index);
    const Callbacks callbacks = keeping_device(given, params.device.index);
    const detail::Input input{{vectors}, {}};
    const OwnedStream stream(resources);
    GNND_CUDA(cudaStreamSynchronize(stream));  // what the caller's stream still writes
    if (vectors.n <= kMostOnHost) return compare_on_host(input, queries, count, params, callbacks, resources);

    const bool in_place = on_device(vectors.data);
    const std::size_t of_set = SweptSet::bytes(input, in_place, params.metric);
    const MemoryLimits limits{std::size_t(params.device_memory), resources.free_device_memory()};
    std::int64_t at_once = 0;
    std::size_t bytes = 0;
    lay_out_to_fit(
        std::min(count, kMostAtOnce), kLeastAtOnce,
        [&](std::int64_t objects) {
            at_once = objects;
            bytes =
                of_set + Sweep::bytes_of_some(SweptSet::shape(input, in_place, params.metric), u32(objects), params.k);
        },
        [&] { return limits.hold(bytes); }, halved);
    if (!limits.hold(bytes))
        return search_parts(vectors, queries, count, Parts(vectors, count, params, limits), params, callbacks,
                            resources, stream);

    KnnGraph graph(count, params.k, params.metric);
    const SweptSet set(input, params.metric, resources, stream);
    set.check(vectors.n);
    Sweep sweep(set.space(), params.k, resources, stream);
    for (std::int64_t begin = 0; begin < count; begin += at_once) {
        const std::int64_t rows = std::min(at_once, count - begin), first = begin * params.k;
        const Lists found = sweep.nearest_of(queries + begin, u32(rows), nullptr, 0, 0);
        close_graph(params.metric, found, rows, stream);
        copy_graph_out(graph.ids() + first, graph.distances() + first, found.ids, found.distances, rows * params.k,
                       resources, stream);
        await(stream, callbacks);
    }
    GNND_CUDA(cudaStreamSynchronize(stream));
    return graph;
}

}  // namespace gnnd::cuda
