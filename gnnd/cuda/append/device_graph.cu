// SPDX-License-Identifier: MIT
// A graph that stays on the GPU, see detail/device_graph.h. It is there twice: append() writes the next one beside the
// last, so that what has changed can be told.
#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <memory>
#include <optional>
#include <utility>

#include "gnnd/cuda/append/tell_rows.cuh"
#include "gnnd/cuda/backend.h"
#include "gnnd/cuda/device/flagged.cuh"
#include "gnnd/cuda/memory/fetch.h"
#include "gnnd/cuda/memory/lasting.h"
#include "gnnd/cuda/memory/layout.h"
#include "gnnd/cuda/memory/memory.h"
#include "gnnd/cuda/memory/transfer.h"
#include "gnnd/detail/device_graph.h"
#include "gnnd/error.h"
#include "gnnd/merge.h"

namespace gnnd::cuda {
namespace {

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

    BuildStats merge(const VectorView& x1, const KnnGraphView& g1, const VectorView& x2, const KnnGraphView& g2,
                     const BuildParams& params, const Callbacks& callbacks, Resources& resources) override {
        const UseDevice use(device_);
        const DeviceMemory given = take_memory(memory_, std::size_t(g1.n * g1.k + g2.n * g2.k) * 8);
        KnnGraphView graphs[] = {g1, g2};
        {
            const OwnedStream stream(resources);
            const Drain drain(stream);
            n_ = before_ = 0;
            reserve(x1.n + x2.n, stream);
            for (const VectorView* set : {&x1, &x2}) {
                copy_vectors(*set, resources, stream);
                n_ += set->n;
            }
            copy_graphs(graphs, given.data(), resources, stream);
        }
        return merge_into(rows(0, x1.n), graphs[0], rows(x1.n, x2.n), graphs[1], params, arrays(now_).ids,
                          arrays(now_).distances, callbacks, &resources);
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
        if (graphs_[next].data() == nullptr) graphs_[next] = take_memory(lasting_, std::size_t(capacity_ * k_) * 8);
        const BuildStats stats =
            append_into(vectors(), graph(), rows(n_, added.n), params, arrays(next).ids, arrays(next).distances,
                        callbacks, &resources, AppendMethod::automatic, unmeasured);
        before_ = std::exchange(n_, n_ + added.n);
        now_ = next;
        return stats;
    }

    std::optional<detail::AppendedRows> changed(std::int64_t most, Resources& resources) override {
        const UseDevice use(device_);
        const OwnedStream stream(resources);
        std::size_t sum_bytes = 0;
        Flagged flagged(before_, stream);
        const auto add_up = [&](void* work, std::int64_t* ends, std::int64_t count) {
            GNND_CUDA(cub::DeviceScan::InclusiveSum(work, sum_bytes, ends, ends, int(count), cudaStream_t(stream)));
        };
        const std::int64_t room = std::clamp<std::int64_t>(most, 0, before_);
        add_up(nullptr, nullptr, room);
        Layout layout;
        const Part flags = layout.take(before_), listed = layout.take(before_ * 4), found = layout.take(4),
                   of_rows = layout.take(room * 8),
                   work = layout.take(std::int64_t(std::max(flagged.work_bytes(), sum_bytes)));
        const DeviceMemory memory(resources, layout.end_, stream);
        const Drain drain(stream);
        auto* changed = reinterpret_cast<std::uint8_t*>(memory.data() + flags.offset);
        auto* objects = reinterpret_cast<std::int32_t*>(memory.data() + listed.offset);
        auto* number = reinterpret_cast<std::int32_t*>(memory.data() + found.offset);
        auto* ends = reinterpret_cast<std::int64_t*>(memory.data() + of_rows.offset);
        const GraphArrays last = arrays(1 - now_), now = arrays(now_);
        find_changed_kernel<<<blocks_for(before_, kRowWarps), kRowWarps * kWarp, 0, stream>>>(last, now, before_, k_,
                                                                                              changed);
        GNND_LAUNCHED("find_changed_kernel");
        flagged.list(memory.data() + work.offset, changed, objects, number);
        const std::int32_t count = fetch(number, stream);
        if (count > most) return std::nullopt;
        detail::AppendedRows told;
        DeviceMemory entries;
        const Drain drain_entries(stream);
        told.added = KnnGraph(n_ - before_, k_, metric_);
        copy_graph_out(told.added.ids(), told.added.distances(), now.ids + before_ * k_, now.distances + before_ * k_,
                       (n_ - before_) * k_, resources, stream);
        if (count != 0) {
            const auto tell = [&](detail::RowEntry* to) {
                tell_rows_kernel<<<blocks_for(count, kRowWarps), kRowWarps * kWarp, 0, stream>>>(
                    last, now, k_, objects, count, before_, ends, to);
                GNND_LAUNCHED("tell_rows_kernel");
            };
            tell(nullptr);
            add_up(memory.data() + work.offset, ends, count);
            told.entries.resize(std::size_t(fetch(ends + count - 1, stream)));
            const std::size_t bytes = told.entries.size() * sizeof(detail::RowEntry);
            entries = DeviceMemory(resources, bytes, stream);
            auto* gathered = reinterpret_cast<detail::RowEntry*>(entries.data());
            tell(gathered);
            told.objects.resize(std::size_t(count));
            told.ends.resize(std::size_t(count));
            copy_out(told.objects.data(), objects, std::size_t(count) * 4, resources, stream);
            copy_out(told.ends.data(), ends, std::size_t(count) * 8, resources, stream);
            copy_out(told.entries.data(), gathered, bytes, resources, stream);
        }
        GNND_CUDA(cudaStreamSynchronize(stream));
        return told;
    }

    detail::PrunedObjects prune_around(const std::vector<std::int32_t>& changed, int degree,
                                       Resources& resources) const override {
        return cuda::prune_around(vectors(), graph(), changed, before_, {degree, {Device::Kind::cuda, device_}, 0},
                                  resources);
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

    /// Copies graphs from host memory, one behind the other, and makes them views of the copies. merge_into() would
    /// copy them, too, but look at each of their ids before, one after the other.
    static void copy_graphs(KnnGraphView (&graphs)[2], std::byte* to, Resources& resources, cudaStream_t stream) {
        const auto copy = [&](const auto* from, std::int64_t n, std::size_t row) {
            copy_in(to, from, n, row, row, resources, stream);
            return reinterpret_cast<decltype(from)>(std::exchange(to, to + std::size_t(n) * row));
        };
        for (KnnGraphView& graph : graphs) {
            graph.ids = copy(graph.ids, graph.n, std::size_t(graph.k) * 4);
            graph.distances = copy(graph.distances, graph.n, std::size_t(graph.k) * 4);
        }
        GNND_CUDA(cudaStreamSynchronize(stream));
    }

    /// Behind those that there are.
    void copy_vectors(const VectorView& vectors, Resources& resources, cudaStream_t stream) {
        copy_in(vector_at(n_), vectors.data, vectors.n, std::size_t(d_) * 4, std::size_t(vectors.row_bytes()),
                resources, stream);
        GNND_CUDA(cudaStreamSynchronize(stream));
    }

    /// In order with the null stream, which outlives the memory.
    static DeviceMemory take_memory(Resources& from, std::size_t bytes) {
        DeviceMemory memory(from, bytes, nullptr);
        GNND_CUDA(cudaStreamSynchronize(nullptr));
        return memory;
    }

    /// Room for so many objects, and a quarter more where it has to grow, so that objects are copied now and then only;
    /// who grows stays.
    void reserve(std::int64_t n, cudaStream_t stream) {
        if (n <= capacity_) return;
        if (n > room_)
            throw OutOfDeviceMemory("DeviceGraph: " + std::to_string(n) + " objects, the bytes that it may take hold " +
                                    std::to_string(room_));
        const std::int64_t capacity = n_ == 0 ? n : std::min(n + n / 4, room_);
        Resources& from = n_ == 0 ? static_cast<Resources&>(memory_) : lasting_;
        const auto grow = [&](DeviceMemory& block, std::int64_t row_bytes, const auto& fill) {
            DeviceMemory larger = take_memory(from, std::size_t(capacity * row_bytes));
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
    HeapResources memory_;   // whose device memory is gnnd's own
    LastingMemory lasting_;  // of a graph that grows
    DeviceMemory vectors_, graphs_[2];
    std::int64_t n_ = 0, before_ = 0, capacity_ = 0;  // objects now, before the last append(), and there is room for
    int now_ = 0;                                     // which of the graphs
};

}  // namespace

std::unique_ptr<detail::DeviceGraph> make_device_graph(int device, std::int64_t d, std::int64_t k, Metric metric,
                                                       std::size_t most) {
    const UseDevice use(device);
    if (most == 0) most = HeapResources().free_device_memory() / 4;
    return std::make_unique<GraphOnDevice>(device, d, k, metric, most);
}

}  // namespace gnnd::cuda
