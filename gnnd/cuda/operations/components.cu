// SPDX-License-Identifier: MIT
// Connected components and groups of copies: see gnnd/cpu/operations/components.cpp. The roots are the lowest numbers,
// whatever the order in which threads join.
#include <cub/device/device_scan.cuh>

#include "gnnd/cuda/operations/edges.cuh"
#include "gnnd/cuda/operations/operations.h"
#include "gnnd/detail/checks.h"

namespace gnnd::cuda {
namespace {

/// Each object is its own parent. \param parents  n, written
__global__ void __launch_bounds__(kRowThreads) own_parents_kernel(std::int32_t* parents, std::int64_t n) {
    const std::int64_t i = thread_number();
    if (i < n) parents[i] = std::int32_t(i);
}

/// As it is in memory now: other threads change parents meanwhile.
__device__ inline std::int32_t load(const std::int32_t* parents, std::int32_t i) {
    return *(static_cast<const volatile std::int32_t*>(parents) + i);
}

/// Lets the higher of both roots point to the lower one.
__device__ void link(std::int32_t* parents, std::int32_t a, std::int32_t b) {
    std::int32_t x = load(parents, a), y = load(parents, b);
    while (x != y) {
        const std::int32_t high = x < y ? y : x, low = x < y ? x : y, of_high = load(parents, high);
        if (of_high == low) return;
        if (of_high == high && atomicCAS(&parents[high], high, low) == high) return;
        x = load(parents, load(parents, high));
        y = load(parents, low);
    }
}

/// A thread an entry of the first columns.
/// \param parents  n
__global__ void __launch_bounds__(kRowThreads) link_kernel(Edges edges, std::int32_t* parents) {
    const std::int64_t e = thread_number(), i = e / edges.columns, j = e - i * edges.columns;
    if (i >= edges.n) return;
    const std::int32_t id = edges.ids_of(i)[j];
    if (edges.counts(id, edges.values_of(i)[j])) link(parents, std::int32_t(i), id);
}

/// A thread an object.
/// \param equal, parents  n
__global__ void __launch_bounds__(kRowThreads)
    link_equal_kernel(const std::int32_t* equal, std::int64_t n, std::int32_t* parents) {
    const std::int64_t i = thread_number();
    if (i < n) link(parents, std::int32_t(i), equal[i]);
}

/// A thread an object: its root, and how many each root has. Objects of a warp with the same root are counted at once,
/// for there may be one that all have. Parents are shortened meanwhile, which leads to the same roots.
/// \param parents  n
/// \param counts   n, 0 before
__global__ void __launch_bounds__(kRowThreads) count_roots_kernel(std::int32_t* parents, std::int64_t n, u32* counts) {
    const std::int64_t i = thread_number();
    const bool there = i < n;
    std::int32_t root = -1;
    if (there) {
        root = load(parents, std::int32_t(i));
        for (std::int32_t next = load(parents, root); next != root; next = load(parents, root)) root = next;
        *(static_cast<volatile std::int32_t*>(parents) + i) = root;
    }
    const u32 same = __match_any_sync(kAllLanes, root);
    if (there && rank_in(same) == 0) atomicAdd(&counts[root], u32(__popc(same)));
}

/// A thread an object, and one more: 1 for a root of `least` objects or more.
/// \param counts   n
/// \param numbers  n + 1, written
__global__ void __launch_bounds__(kRowThreads)
    mark_roots_kernel(const u32* counts, std::int64_t n, u32 least, std::int32_t* numbers) {
    const std::int64_t i = thread_number();
    if (i <= n) numbers[i] = i < n && counts[i] >= least;  // counts of others are 0
}

/// Of label_kernel().
struct LabelArgs {
    std::int64_t n;               ///< objects
    const std::int32_t* roots;    ///< n: of each object
    const u32* counts;            ///< n: of a root how many objects have it
    const std::int32_t* numbers;  ///< n: of a root that is kept its place among these
    u32 least;                    ///< objects that a root which is kept has
    std::int32_t* labels;         ///< n
    std::int64_t* sizes;          ///< roots that are kept
    std::int32_t* firsts;         ///< roots that are kept
};

/// A thread an object: the number of its root, -1 for a root of too few.
__global__ void __launch_bounds__(kRowThreads) label_kernel(LabelArgs args) {
    const std::int64_t i = thread_number();
    if (i >= args.n) return;
    const std::int32_t root = args.roots[i];
    const bool kept = args.counts[root] >= args.least;
    args.labels[i] = kept ? args.numbers[root] : -1;
    if (!kept || root != i) return;
    args.sizes[args.numbers[i]] = args.counts[i];
    args.firsts[args.numbers[i]] = root;
}

/// Components of `least` objects or more.
/// \param equal  n on the host, or null
Duplicates number_components(const Edges& edges, const std::int32_t* equal, u32 least, Work& work) {
    const std::int64_t n = edges.n;
    const DeviceArray<std::int32_t> parents(work, n), numbers(work, n + 1), labels(work, n);
    launch_threads("own_parents_kernel", own_parents_kernel, n, work.stream, parents.get(), n);
    launch_threads("link_kernel", link_kernel, n * edges.columns, work.stream, edges, parents.get());
    if (equal != nullptr) {
        constexpr std::size_t kRow = sizeof *equal;
        copy_in(labels, equal, n, kRow, kRow, work.resources, work.stream);
        launch_threads("link_equal_kernel", link_equal_kernel, n, work.stream, labels.get(), n, parents.get());
    }
    DeviceArray<u32> counts(work, n);
    counts.fill(0, work);
    launch_threads("count_roots_kernel", count_roots_kernel, n, work.stream, parents.get(), n, counts.get());
    launch_threads("mark_roots_kernel", mark_roots_kernel, n + 1, work.stream, counts.get(), n, least, numbers.get());
    std::size_t bytes = 0;
    const auto add_up = [&](void* room) {
        GNND_CUDA(
            cub::DeviceScan::ExclusiveSum(room, bytes, numbers.get(), numbers.get(), n + 1, cudaStream_t(work.stream)));
    };
    add_up(nullptr);
    const DeviceArray<std::byte> room(work, std::int64_t(bytes));
    add_up(room);
    const std::int64_t groups = work.read(numbers.get() + n);
    const DeviceArray<std::int64_t> sizes(work, groups);
    const DeviceArray<std::int32_t> firsts(work, groups);
    const LabelArgs label{.n = n,
                          .roots = parents.get(),
                          .counts = counts.get(),
                          .numbers = numbers.get(),
                          .least = least,
                          .labels = labels.get(),
                          .sizes = sizes.get(),
                          .firsts = firsts.get()};
    launch_threads("label_kernel", label_kernel, n, work.stream, label);
    Duplicates found;
    found.labels.resize(std::size_t(n));
    found.sizes.resize(std::size_t(groups));
    found.firsts.resize(std::size_t(groups));
    work.read(found.labels.data(), labels.get(), n);
    work.read(found.sizes.data(), sizes.get(), groups);
    work.read(found.firsts.data(), firsts.get(), groups);
    return found;
}

}  // namespace

Components connected_components(const KnnGraphView& graph, const EdgeParams& params, const Callbacks& callbacks,
                                Resources& resources) {
    Work work(params.device, callbacks, resources);
    const DeviceEdges own("connected_components", graph, params, work);
    Duplicates found = number_components(own.edges, nullptr, 1, work);
    return {std::move(found.labels), std::move(found.sizes)};
}

Duplicates duplicates(const KnnGraphView& graph, const DuplicateParams& params, const Callbacks& callbacks,
                      Resources& resources) {
    detail::check_threshold(params);
    Work work(params.device, callbacks, resources);
    const DeviceEdges own("duplicates", graph, EdgeParams{params.neighbors, params.values, params.threshold, 0, {}},
                          work);
    if (params.equal != nullptr) {
        detail::check_reach({Device::Kind::cpu, 0}, {params.equal});
        detail::check_ids(params.equal, graph.n, 0, graph.n, "DuplicateParams::equal");
    }
    const bool joined = detail::equal_rows_count(own.edges, graph.metric);
    Duplicates found = number_components(own.edges, joined ? params.equal : nullptr, 2, work);
    found.full = count_full(own.edges, work);
    return found;
}

}  // namespace gnnd::cuda
