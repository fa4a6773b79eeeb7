// SPDX-License-Identifier: MIT
#pragma once
/// \file edges.cuh
/// A graph's entries in device memory, and what all operations on them share.

#include <algorithm>
#include <utility>

#include "gnnd/cuda/device/warp.cuh"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/cuda/runtime/wait.h"
#include "gnnd/detail/edges.h"

namespace gnnd::cuda {

using detail::Edges;

/// Threads of a block: kernels take a row by a thread or, kRowWarps of them in a block, by a warp.
inline constexpr int kRowThreads = 256, kRowWarps = kRowThreads / kWarp;

/// The thread's number in the grid, and its warp's.
__device__ inline std::int64_t thread_number() {
    return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t warp_number() {
    return thread_number() / kWarp;
}

/// Starts a kernel with a thread for each of `count` items, at least one.
template <class... Parameters, class... Arguments>
void launch_threads(const char* name, void (*kernel)(Parameters...), std::int64_t count, cudaStream_t stream,
                    const Arguments&... arguments) {
    kernel<<<blocks_for(count, kRowThreads), kRowThreads, 0, stream>>>(arguments...);
    check(cudaGetLastError(), name, __FILE__, __LINE__);
}
/// With a warp for each.
template <class... Parameters, class... Arguments>
void launch_warps(const char* name, void (*kernel)(Parameters...), std::int64_t count, cudaStream_t stream,
                  const Arguments&... arguments) {
    kernel<<<blocks_for(count, kRowWarps), kRowThreads, 0, stream>>>(arguments...);
    check(cudaGetLastError(), name, __FILE__, __LINE__);
}

/// The device, the stream and the memory of a call.
struct Work {
    UseDevice device;
    Resources& resources;
    const Callbacks& callbacks;
    OwnedStream stream;

    Work(const Device& where, const Callbacks& hooks, Resources& memory)
        : device(where.index), resources(memory), callbacks(hooks), stream(memory) {}

    /// Copies to host memory, and waits until it is there. \throws Interrupted
    template <class T>
    void read(T* host, const T* from, std::int64_t count) {
        const Drain drain(stream);
        if (count > 0) copy_out(host, from, std::size_t(count) * sizeof(T), resources, stream);
        await(stream, callbacks);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }
    template <class T>
    T read(const T* from) {
        T value;
        read(&value, from, 1);
        return value;
    }
};

/// An array in device memory. Goes back in order with the stream.
template <class T>
class DeviceArray {
  public:
    DeviceArray() = default;
    DeviceArray(Work& work, std::int64_t count)
        : memory_(work.resources, std::size_t(count) * sizeof(T), work.stream), count_(count) {}
    DeviceArray& fill(int byte, Work& work) {
        GNND_CUDA(cudaMemsetAsync(get(), byte, std::size_t(count_) * sizeof(T), work.stream));
        return *this;
    }
    T* get() const { return reinterpret_cast<T*>(memory_.data()); }
    operator T*() const { return get(); }

  private:
    DeviceMemory memory_;
    std::int64_t count_ = 0;
};

/// The smallest number that a kernel has found by atomicMin().
class First {
  public:
    explicit First(Work& work) : least_(work, 1) { least_.fill(0xff, work); }
    u64* get() const { return least_; }
    /// -1: none
    std::int64_t read(Work& work) const { return std::int64_t(work.read(least_.get())); }

  private:
    DeviceArray<u64> least_;
};

/// A graph's entries, copied to the device as far as they are not there, with the memory of what was copied.
class DeviceEdges {
  public:
    /// Checks the rows, too. \throws InvalidArgument that names the first bad one
    DeviceEdges(const char* who, const KnnGraphView& graph, int neighbors, Work& work);
    /// As the parameters say. \throws InvalidArgument for these, too
    DeviceEdges(const char* who, const KnnGraphView& graph, const EdgeParams& params, Work& work);

    Edges edges;
    /// The values where they are not the caller's, null otherwise.
    float* own_values() const { return values_; }

  private:
    void convert(const char* who, Metric metric, Work& work);

    DeviceArray<std::int32_t> ids_;
    DeviceArray<float> values_;
};

/// Objects all of whose entries count, n - 1 where there are no more objects.
std::int64_t count_full(const Edges& edges, Work& work);

/// A kernel that gets the values of all entries: of as many places as the caller's rows have.
inline std::int64_t places_of(const Edges& edges) {
    return edges.n * edges.k;
}

}  // namespace gnnd::cuda
