// SPDX-License-Identifier: MIT
// A graph that stays on the GPU, see detail/device_graph.h. It is there twice: append() writes the next one beside the
// last, so that what has changed can be told.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_select.cuh>
#include <memory>
#include <utility>

#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/device/state.cuh"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/detail/device_graph.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"

namespace gnnd::cuda {
namespace {

constexpr int kRowWarps = 8;

/// A graph of n objects in arrays that have room for more.
struct GraphArrays {
    std::int32_t* ids;  ///< n x k
    float* distances;   ///< n x k
};

/// A warp a row: whether it differs.
/// \param changed  n, 1 or 0 written
__global__ void __launch_bounds__(kRowWarps* kWarp)
    find_changed_kernel(GraphArrays before, GraphArrays after, std::int64_t n, std::int64_t k, std::uint8_t* changed) {
    const std::int64_t object = std::int64_t(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
    if (object >= n) return;
    bool differs = false;
    for (std::int64_t j = object * k + lane_id(); j < (object + 1) * k; j += kWarp)
        differs |= before.ids[j] != after.ids[j] || before.distances[j] != after.distances[j];
    differs = __any_sync(kAllLanes, differs);
    if (lane_id() == 0) changed[object] = differs;
}

/// A warp a row: the rows of the objects, then those from `added` on, without gaps.
/// \param objects  count
/// \param out      rows x k, written
__global__ void __launch_bounds__(kRowWarps* kWarp)
    gather_rows_kernel(GraphArrays graph, std::int64_t k, const std::int32_t* objects, std::int64_t count,
                       std::int64_t added, std::int64_t rows, GraphArrays out) {
    const std::int64_t row = std::int64_t(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
    if (row >= rows) return;
    const std::int64_t object = row < count ? objects[row] : added + row - count;
    for (std::int64_t j = lane_id(); j < k; j += kWarp) {
        out.ids[row * k + j] = graph.ids[object * k + j];
        out.distances[row * k + j] = graph.distances[object * k + j];
    }
}

class GraphOnDevice final : public detail::DeviceGraph {
  public:
    GraphOnDevice(int device, std::int64_t d, std::int64_t k, Metric metric, std::size_t most)
        : device_(device), d_(d), k_(k), metric_(metric), room_(std::int64_t(most) / bytes_of_object()) {}

    /// The memory goes back on the device that it is of; without it, as after cudaDeviceReset(), there is none.
    ~GraphOnDevice() override {
        try {
            const UseDevice use(device_);
            vectors_ = {};
            graphs_[0] = {};
            graphs_[1] = {};
        } catch (const Error&) {
            return;
        }
    }

    int device() const override { return device_; }
    std::int64_t n() const override { return n_; }
    std::int64_t room() const override { return room_; }
    std::size_t bytes() const override {
        const bool twice = graphs_[1 - now_].data() != nullptr;
        return std::size_t(capacity_ * (d_ * 4 + k_ * (twice ? 16 : 8)));
    }
    VectorView vectors() const override { return rows(0, n_); }
    KnnGraphView graph() const override { return view(now_, n_); }

    void load(const VectorView& vectors, const KnnGraphView& graph, Resources& resources) override {
        const UseDevice use(device_);
        const OwnedStream stream(resources);
        const Drain drain(stream);
        take(vectors, resources, stream);
        const std::size_t row = std::size_t(k_) * 4;
        copy_in(arrays(now_).ids, graph.ids, n_, row, row, resources, stream);
        copy_in(arrays(now_).distances, graph.distances, n_, row, row, resources, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }

    BuildStats build(const VectorView& vectors, const BuildParams& params, const Callbacks& callbacks,
                     Resources& resources) override {
        const UseDevice use(device_);
        {
            const OwnedStream stream(resources);
            const Drain drain(stream);
            take(vectors, resources, stream);
        }
        return build_into(this->vectors(), params, arrays(now_).ids, arrays(now_).distances, callbacks, &resources);
    }

    BuildStats append(const VectorView& added, std::int64_t unmeasured, const BuildParams& params,
                      const Callbacks& callbacks, Resources& resources) override {
        const UseDevice use(device_);
        {
            const OwnedStream stream(resources);
            const Drain drain(stream);
            reserve(n_ + added.n, stream);
            copy_vectors(added, resources, stream);
        }
        const int next = 1 - now_;
        if (graphs_[next].data() == nullptr) graphs_[next] = take_memory(std::size_t(capacity_ * k_) * 8);
        const BuildStats stats =
            append_into(vectors(), graph(), rows(n_, added.n), params, arrays(next).ids, arrays(next).distances,
                        callbacks, &resources, AppendMethod::automatic, unmeasured);
        before_ = std::exchange(n_, n_ + added.n);
        now_ = next;
        return stats;
    }

    std::shared_ptr<detail::AppendedRows> changed(std::int64_t most, Resources& resources) override {
        const UseDevice use(device_);
        const OwnedStream stream(resources);
        std::size_t select_bytes = 0;
        const thrust::counting_iterator<std::int32_t> numbers(0);
        const auto select = [&](void* work, const std::uint8_t* flags, std::int32_t* objects, std::int32_t* count) {
            GNND_CUDA(cub::DeviceSelect::Flagged(work, select_bytes, numbers, flags, objects, count, int(before_),
                                                 cudaStream_t(stream)));
        };
        select(nullptr, nullptr, nullptr, nullptr);
        Layout layout;
        const Part flags = layout.take(before_), listed = layout.take(before_ * 4), found = layout.take(4),
                   work = layout.take(std::int64_t(select_bytes));
        const DeviceMemory memory(resources, layout.end_, stream);
        const Drain drain(stream);
        auto* changed = reinterpret_cast<std::uint8_t*>(memory.data() + flags.offset);
        auto* objects = reinterpret_cast<std::int32_t*>(memory.data() + listed.offset);
        auto* number = reinterpret_cast<std::int32_t*>(memory.data() + found.offset);
        find_changed_kernel<<<blocks_for(before_, kRowWarps), kRowWarps * kWarp, 0, stream>>>(
            arrays(1 - now_), arrays(now_), before_, k_, changed);
        GNND_LAUNCHED("find_changed_kernel");
        select(memory.data() + work.offset, changed, objects, number);
        std::int32_t count = 0;
        GNND_CUDA(cudaMemcpyAsync(&count, number, sizeof(count), cudaMemcpyDeviceToHost, stream));
        GNND_CUDA(cudaStreamSynchronize(stream));
        if (count > most) return nullptr;
        const std::int64_t rows = count + n_ - before_;
        if (told_ == nullptr || told_.use_count() > 1)  // whoever has that of the last call keeps it
            told_ = std::make_shared<detail::AppendedRows>(detail::AppendedRows{{}, {0, k_, metric_}, {}});
        told_->objects.resize(std::size_t(count));
        told_->rows.resize(rows);
        const DeviceMemory gathered(resources, std::size_t(rows * k_) * 8, stream);
        const Drain drain_gathered(stream);
        auto* ids = reinterpret_cast<std::int32_t*>(gathered.data());
        const GraphArrays out{ids, reinterpret_cast<float*>(ids + rows * k_)};
        gather_rows_kernel<<<blocks_for(rows, kRowWarps), kRowWarps * kWarp, 0, stream>>>(arrays(now_), k_, objects,
                                                                                          count, before_, rows, out);
        GNND_LAUNCHED("gather_rows_kernel");
        copy_out(told_->objects.data(), objects, std::size_t(count) * 4, resources, stream);
        copy_graph_out(told_->rows.ids(), told_->rows.distances(), out.ids, out.distances, rows * k_, resources,
                       stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
        return told_;
    }

    void copy_graph(std::int32_t* ids, float* distances) override {
        const UseDevice use(device_);
        const OwnedStream stream(memory_);
        const Drain drain(stream);
        copy_graph_out(ids, distances, arrays(now_).ids, arrays(now_).distances, n_ * k_, memory_, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }

  private:
    std::int64_t bytes_of_object() const { return d_ * 4 + k_ * 16; }
    float* vector_at(std::int64_t i) const { return reinterpret_cast<float*>(vectors_.data()) + i * d_; }
    VectorView rows(std::int64_t first, std::int64_t count) const {
        return {vector_at(first), count, d_, DType::f32, 0};
    }
    GraphArrays arrays(int which) const {
        auto* ids = reinterpret_cast<std::int32_t*>(graphs_[which].data());
        return {ids, reinterpret_cast<float*>(ids + capacity_ * k_)};
    }
    KnnGraphView view(int which, std::int64_t n) const {
        return {n, k_, metric_, arrays(which).ids, arrays(which).distances};
    }

    /// Other vectors, in place of those that there are.
    void take(const VectorView& vectors, Resources& resources, cudaStream_t stream) {
        n_ = before_ = 0;
        reserve(vectors.n, stream);
        copy_vectors(vectors, resources, stream);
        n_ = vectors.n;
    }

    /// Behind those that there are.
    void copy_vectors(const VectorView& vectors, Resources& resources, cudaStream_t stream) {
        copy_in(vector_at(n_), vectors.data, vectors.n, std::size_t(d_) * 4, std::size_t(vectors.row_bytes()),
                resources, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }

    /// In order with the null stream, which outlives the memory.
    DeviceMemory take_memory(std::size_t bytes) {
        DeviceMemory memory(memory_, bytes, nullptr);
        GNND_CUDA(cudaStreamSynchronize(nullptr));
        return memory;
    }

    /// Room for so many objects, and a quarter more where it has to grow, so that objects are copied now and then only.
    void reserve(std::int64_t n, cudaStream_t stream) {
        if (n <= capacity_) return;
        if (n > room_)
            throw OutOfDeviceMemory("DeviceGraph: " + std::to_string(n) + " objects, the bytes that it may take hold " +
                                    std::to_string(room_));
        const std::int64_t capacity = n_ == 0 ? n : std::min(n + n / 4, room_);
        const auto grow = [&](DeviceMemory& block, std::int64_t row_bytes, const auto& fill) {
            DeviceMemory larger = take_memory(std::size_t(capacity * row_bytes));
            fill(larger.data());
            GNND_CUDA(cudaStreamSynchronize(stream));
            block = std::move(larger);
        };
        graphs_[1 - now_] = {};
        const auto copy = [&](void* to, const void* from, std::int64_t bytes) {
            if (bytes != 0) GNND_CUDA(cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDeviceToDevice, stream));
        };
        grow(vectors_, d_ * 4, [&](std::byte* to) { copy(to, vectors_.data(), n_ * d_ * 4); });
        grow(graphs_[now_], k_ * 8, [&](std::byte* to) {
            copy(to, arrays(now_).ids, n_ * k_ * 4);
            copy(to + capacity * k_ * 4, arrays(now_).distances, n_ * k_ * 4);
        });
        capacity_ = capacity;
    }

    const int device_;
    const std::int64_t d_, k_;
    const Metric metric_;
    const std::int64_t room_;
    HeapResources memory_;  // whose device memory is gnnd's own
    DeviceMemory vectors_, graphs_[2];
    std::int64_t n_ = 0, before_ = 0,
                 capacity_ = 0;                   // objects now, before the last append(), and that there is room for
    int now_ = 0;                                 // which of the graphs
    std::shared_ptr<detail::AppendedRows> told_;  // by changed()
};

}  // namespace

std::unique_ptr<detail::DeviceGraph> make_device_graph(int device, std::int64_t d, std::int64_t k, Metric metric,
                                                       std::size_t most) {
    const UseDevice use(device);
    if (most == 0) most = HeapResources().free_device_memory() / 4;
    return std::make_unique<GraphOnDevice>(device, d, k, metric, most);
}

}  // namespace gnnd::cuda
