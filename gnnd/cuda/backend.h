// SPDX-License-Identifier: MIT
#pragma once
/// \file backend.h
/// The functions of builder.h, merge.h and search_links.h on a GPU. Arguments were checked by the caller. Needs no CUDA
/// headers.

#include <memory>
#include <vector>

#include "gnnd/builder.h"
#include "gnnd/detail/input.h"
#include "gnnd/search_links.h"

namespace gnnd::detail {
class DeviceGraph;
struct PrunedObjects;
struct GpuTraits;
}  // namespace gnnd::detail

namespace gnnd::cuda {

/// Number of GPUs of this process; where it is 0, `why` says the reason.
int device_count(std::string* why = nullptr);

/// True if there is a GPU of this number that the kernels run on; `why` says the reason otherwise.
bool usable(int index, std::string& why);

/// The properties of that GPU. \throws DeviceError
const detail::GpuTraits& traits_of(int index);

/// True if the paper's variants, Update::selective and Update::all, are compiled in (GNND_CUDA_VARIANTS).
bool has_variants();

/// The GPU in whose memory the pointer lies, or kHost.
int device_of(const void* pointer);
inline constexpr int kHost = -1;
inline bool on_device(const void* pointer) {
    return device_of(pointer) != kHost;
}

/// Vectors of a GPU to host memory, without gaps between rows.
void copy_to_host(const VectorView& vectors, void* out);

/// build(), refine() or merge(), as the input says. Vectors, graphs and result lie on the host or on the device.
/// \param choices  of resolve(); the plan may still lower their capacity
BuildStats run(const detail::Input& input, const BuildParams& params, const Choices& choices,
               const Callbacks& callbacks, Resources& resources, std::int32_t* ids, float* distances);

/// The same for exact_neighbors(). Vectors lie on the host or on the device.
KnnGraph exact_neighbors(const VectorView& vectors, const std::int32_t* queries, std::int64_t count,
                         const BuildParams& params, const Callbacks& callbacks, Resources& resources);

/// See detail/run.h. The vectors lie on the host or on the device, the sample on the host.
/// \param first  the number by which an error calls the first of the vectors
/// \throws InvalidArgument for a vector that the metric cannot work with; the sample is not looked at
KnnGraph nearest_of(const VectorView& vectors, const VectorView& sample, const std::int32_t* selves, int k,
                    Metric metric, int device, Resources& resources, std::int64_t first = 0);

/// Vectors, the graph's ids and links lie on the host or on the device.
void search_links(const VectorView& vectors, const KnnGraphView& graph, const LinkParams& params, std::int32_t* links,
                  const Callbacks& callbacks, Resources& resources);

/// Vectors and the graph's ids lie on the host or on the device, objects and links on the host.
void prune_rows(const VectorView& vectors, const KnnGraphView& graph, const std::int32_t* objects, std::int64_t count,
                const LinkParams& params, std::int32_t* links, const Callbacks& callbacks, Resources& resources);

/// Vectors and the graph lie on the device. What is pruned are the rows of the objects from `old` on, of those that
/// have changed, and of the old ones that the first are linked to by it.
detail::PrunedObjects prune_around(const VectorView& vectors, const KnnGraphView& graph,
                                   const std::vector<std::int32_t>& changed, std::int64_t old, const LinkParams& params,
                                   Resources& resources);

/// See detail/device_graph.h. \param most  bytes; 0: a quarter of what is free
std::unique_ptr<detail::DeviceGraph> make_device_graph(int device, std::int64_t d, std::int64_t k, Metric metric,
                                                       std::size_t most);

/// The memory that a run from and to the host would take, computed without taking it. The pointers may be null.
MemoryPlan plan(const detail::Input& input, const BuildParams& params, const Choices& choices);

}  // namespace gnnd::cuda
