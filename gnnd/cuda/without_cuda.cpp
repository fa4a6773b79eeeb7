// SPDX-License-Identifier: MIT
// The functions of backend.h and operations/operations.h without the CUDA backend: each says that it was not compiled
// in.
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/operations/operations.h"
#include "gnnd/detail/device_graph.h"
#include "gnnd/error.h"

namespace gnnd {
namespace {

constexpr const char* kWhy = "this build of gnnd has no CUDA backend";

[[noreturn]] void refuse() {
    throw Unavailable(kWhy);
}

}  // namespace

namespace cuda {

int device_count(std::string* why) {
    if (why != nullptr) *why = kWhy;
    return 0;
}

bool usable(int /*index*/, std::string& why) {
    why = kWhy;
    return false;
}

int device_of(const void* /*pointer*/) {
    return kHost;
}

void copy_to_host(const VectorView& /*vectors*/, void* /*out*/) {
    refuse();
}

BuildStats run(const detail::Input& /*input*/, const BuildParams& /*params*/, const Choices& /*choices*/,
               const Callbacks& /*callbacks*/, Resources& /*resources*/, std::int32_t* /*ids*/, float* /*distances*/) {
    refuse();
}

KnnGraph exact_neighbors(const VectorView& /*vectors*/, const std::int32_t* /*queries*/, std::int64_t /*count*/,
                         const BuildParams& /*params*/, const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

KnnGraph nearest_of(const VectorView& /*vectors*/, const VectorView& /*sample*/, const std::int32_t* /*selves*/,
                    int /*k*/, Metric /*metric*/, int /*device*/, Resources& /*resources*/, std::int64_t /*first*/) {
    refuse();
}

void search_links(const VectorView& /*vectors*/, const KnnGraphView& /*graph*/, const LinkParams& /*params*/,
                  std::int32_t* /*links*/, const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

void prune_rows(const VectorView& /*vectors*/, const KnnGraphView& /*graph*/, const std::int32_t* /*objects*/,
                std::int64_t /*count*/, const LinkParams& /*params*/, std::int32_t* /*links*/,
                const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

std::unique_ptr<detail::DeviceGraph> make_device_graph(int /*device*/, std::int64_t /*d*/, std::int64_t /*k*/,
                                                       Metric /*metric*/, std::size_t /*most*/) {
    refuse();
}

CsrGraph neighbors_graph(const KnnGraphView& /*graph*/, const EdgeParams& /*params*/, const Callbacks& /*callbacks*/,
                         Resources& /*resources*/) {
    refuse();
}

std::int64_t full_rows(const KnnGraphView& /*graph*/, const EdgeParams& /*params*/, const Callbacks& /*callbacks*/,
                       Resources& /*resources*/) {
    refuse();
}

CsrGraph symmetric_graph(const KnnGraphView& /*graph*/, const EdgeParams& /*params*/, const Callbacks& /*callbacks*/,
                         Resources& /*resources*/) {
    refuse();
}

CsrGraph mutual_graph(const KnnGraphView& /*graph*/, const EdgeParams& /*params*/, const Callbacks& /*callbacks*/,
                      Resources& /*resources*/) {
    refuse();
}

CsrGraph jaccard_graph(const KnnGraphView& /*graph*/, const JaccardParams& /*params*/, const Callbacks& /*callbacks*/,
                       Resources& /*resources*/) {
    refuse();
}

CsrGraph fuzzy_simplicial_set(const KnnGraphView& /*graph*/, const FuzzyParams& /*params*/,
                              const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

Array<float> core_distances(const KnnGraphView& /*graph*/, const ReachabilityParams& /*params*/,
                            const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

CsrGraph mutual_reachability_graph(const KnnGraphView& /*graph*/, const ReachabilityParams& /*params*/,
                                   const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

Components connected_components(const KnnGraphView& /*graph*/, const EdgeParams& /*params*/,
                                const Callbacks& /*callbacks*/, Resources& /*resources*/) {
    refuse();
}

Duplicates duplicates(const KnnGraphView& /*graph*/, const DuplicateParams& /*params*/, const Callbacks& /*callbacks*/,
                      Resources& /*resources*/) {
    refuse();
}

MemoryPlan plan(const detail::Input& /*input*/, const BuildParams& /*params*/, const Choices& /*choices*/) {
    refuse();
}

}  // namespace cuda

void* Resources::allocate_device(std::size_t bytes, Stream) {
    throw Unavailable("asked for " + std::to_string(bytes) + " bytes on a device: " + kWhy);
}
std::size_t Resources::free_device_memory() {
    return 0;
}
void Resources::deallocate_device(void*, std::size_t, Stream) noexcept {}

void keep_device_memory(std::size_t /*bytes*/) {}

}  // namespace gnnd
