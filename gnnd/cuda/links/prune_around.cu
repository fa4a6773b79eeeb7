// SPDX-License-Identifier: MIT
// Step 1 of search_links() for what an append() concerns, on the GPU. Who that is comes out on the way, so that vectors
// are prepared once and nothing but the result goes to the host.
#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <vector>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/device/flagged.cuh"
#include "gnnd/cuda/links/link_space.h"
#include "gnnd/cuda/memory/fetch.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/detail/device_graph.h"

namespace gnnd::cuda {
namespace {

constexpr int kMarkThreads = 256;

/// Marks those of some objects that are below `old`; a negative one is none. A thread each.
__global__ void __launch_bounds__(kMarkThreads)
    mark_kernel(const std::int32_t* objects, std::int64_t count, std::int64_t old, std::uint8_t* marks) {
    const std::int64_t i = std::int64_t(blockIdx.x) * kMarkThreads + threadIdx.x;
    if (i < count && objects[i] >= 0 && objects[i] < old) marks[objects[i]] = 1;
}

/// Host memory for what the device writes: page-locked, and so warm from the last time, unless it is much.
std::shared_ptr<std::int32_t[]> take_host_memory(std::size_t count) {
    constexpr std::size_t kLeast = std::size_t(1) << 20, kMost = std::size_t(32) << 20;  // bytes
    const std::size_t bytes = count * sizeof(std::int32_t);
    if (bytes <= kMost) {
        try {
            const auto locked = std::make_shared<PinnedMemory>(std::max(kLeast, std::bit_ceil(bytes)));
            return {locked, static_cast<std::int32_t*>(locked->data())};
        } catch (const DeviceError&) {  // then memory as any other
        }
    }
    return std::make_shared_for_overwrite<std::int32_t[]>(count);
}

}  // namespace

detail::PrunedObjects prune_around(const VectorView& vectors, const KnnGraphView& graph,
                                   const std::vector<std::int32_t>& changed, std::int64_t old, const LinkParams& params,
                                   Resources& resources) {
    const UseDevice device(params.device.index);
    const OwnedStream stream(resources);
    const std::int64_t added = graph.n - old, first = added + std::int64_t(changed.size()), degree = params.degree;
    const std::int64_t most = std::min(first + added * std::min(degree, graph.k), graph.n);
    LinkSpace space(vectors, graph, params.degree, false, most, resources, stream);
    const LinkPlan& plan = space.plan();

    Flagged flagged(old, stream);
    Layout layout;
    const Part marked = layout.take(old), found = layout.take(4),
               work = layout.take(std::int64_t(flagged.work_bytes()));
    const DeviceMemory memory(resources, layout.end_, stream);
    const Drain drain(stream);
    auto* marks = reinterpret_cast<std::uint8_t*>(memory.data() + marked.offset);
    auto* number = reinterpret_cast<std::int32_t*>(memory.data() + found.offset);
    auto *objects = space.at<std::int32_t>(plan.objects), *links = space.at<std::int32_t>(plan.links);
    const auto mark = [&](const std::int32_t* which, std::int64_t count) {
        if (count == 0) return;
        mark_kernel<<<blocks_for(count, kMarkThreads), kMarkThreads, 0, stream>>>(which, count, old, marks);
        GNND_LAUNCHED("mark_kernel");
    };
    const auto prune = [&](std::int64_t begin, std::int64_t count) {
        space.prune({links + begin * degree, space.at<u32>(plan.sizes) + begin, nullptr, params.degree},
                    objects + begin, count, {});
    };

    std::vector<std::int32_t> listed(static_cast<std::size_t>(first));  // the added, then the changed
    std::iota(listed.begin(), listed.begin() + added, std::int32_t(old));
    std::copy(changed.begin(), changed.end(), listed.begin() + added);
    copy_in(objects, listed.data(), first, sizeof(std::int32_t), sizeof(std::int32_t), resources, stream);
    GNND_CUDA(cudaMemsetAsync(marks, 0, marked.bytes, stream));
    GNND_CUDA(cudaMemsetAsync(links, 0xff, plan.links.bytes, stream));
    mark(objects + added, first - added);
    prune(0, added);
    mark(links, added * degree);
    flagged.list(memory.data() + work.offset, marks, objects + added, number);
    const std::int64_t others = fetch(number, stream), count = added + others;
    prune(added, others);
    const std::shared_ptr<std::int32_t[]> host = take_host_memory(std::size_t(count * (1 + degree)));
    copy_out(host.get(), objects, std::size_t(count) * 4, resources, stream);
    copy_out(host.get() + count, links, std::size_t(count * degree) * 4, resources, stream);
    GNND_CUDA(cudaStreamSynchronize(stream));
    return {count, host};
}

}  // namespace gnnd::cuda
